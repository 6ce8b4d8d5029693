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

/** The file a program of a document is saved in, if its first line says so: `// name.ts`. */
export const programName = (text: string): string | undefined => /^\/\/ ([\w-]+\.ts)\n/.exec(text)?.[1];

/** Where the links of a document lead that stay in the repository, as they are written: `file#heading`. */
export function localLinks(markdown: string): readonly string[] {
  const prose = markdown.replace(/^```.*?^```$/gms, "").replace(/`[^`\n]*`/g, (code) => code.replace(/[\]()[]/g, " "));
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? "");
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** What can stand behind `#` in a link to the document: its headings, in the form that hosts of repositories give them. */
export function headingAnchors(markdown: string): readonly string[] {
  const seen = new Map<string, number>();
  return [...markdown.replace(/^```.*?^```$/gms, "").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = text.replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  });
}
