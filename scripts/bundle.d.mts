export declare function bundle(
  dist: string,
): Promise<readonly { readonly fileName: string; readonly type: "chunk" | "asset" }[]>;
