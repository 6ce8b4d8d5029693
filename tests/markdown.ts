/** What tests read of our documents. */
export interface CodeBlock {
  readonly language: string;
  readonly text: string;
}

/** The fenced code of a document, in order. */
export function codeBlocks(markdown: string): readonly CodeBlock[] {
  return [...markdown.matchAll(/^```(\S*)\n(.*?)^```$/gms)].map(([, language, text]) => ({
    language: language ?? "",
    text: text ?? "",
  }));
}

/** Where the links of a document lead that stay in the repository, without their fragments. */
export function localLinks(markdown: string): readonly string[] {
  const targets = [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? "");
  return targets.filter((target) => !/^[a-z]+:|^#/.test(target)).map((target) => target.replace(/#.*$/, ""));
}
