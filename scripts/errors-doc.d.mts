export interface ErrorRow {
  readonly code: string;
  readonly section: string;
  readonly text: string;
  readonly fields: readonly {
    readonly name: string;
    readonly type: string;
    readonly optional: boolean;
    readonly text: string;
  }[];
}
export declare function readRows(source: string): readonly ErrorRow[];
export declare function readClasses(
  source: string,
): readonly { readonly name: string; readonly areas: readonly string[] }[];
export declare function render(source: string): string;
