export interface CitedRule {
  readonly rule: string;
  /** "partly", "later", or nothing. */
  readonly mark: string;
  /** The names of those tests in a file that cite the rule themselves; none when the file's words do. */
  readonly tests: readonly { readonly file: string; readonly names: readonly string[] }[];
}
export declare function readRules(page: string): readonly { readonly name: string; readonly mark: string }[];
export declare function citedRules(text: string, letters: string): ReadonlySet<string>;
export declare function testNames(text: string): readonly string[];
export declare function readCitations(): {
  readonly rules: readonly CitedRule[];
  readonly strays: readonly { readonly file: string; readonly rule: string }[];
};
