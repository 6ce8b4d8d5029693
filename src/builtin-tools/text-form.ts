/** Text as files hold it: byte order mark and line ends are the file's, and stay so whoever edits. Pure. */

export type LineEnds = "lf" | "crlf" | "mixed";

export interface TextForm {
  /** Without its byte order mark. */
  readonly text: string;
  readonly bom: boolean;
  readonly ends: LineEnds;
}

const mark = "\ufeff";
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes; undefined for others, and for those with a NUL, which no text has. */
export function textOf(bytes: Uint8Array): TextForm | undefined {
  if (bytes.includes(0)) return undefined;
  let whole: string;
  try {
    whole = strict.decode(bytes);
  } catch {
    return undefined;
  }
  const bom = whole.startsWith(mark);
  const text = bom ? whole.slice(1) : whole;
  return { text, bom, ends: endsOf(text) };
}

export const bytesOf = (text: string, bom: boolean): Buffer => Buffer.from(bom ? `${mark}${text}` : text, "utf8");

/** `text` with the line ends of the file it goes into: only where those are all CRLF and `text` has none of its own. */
export const withEnds = (text: string, ends: LineEnds): string =>
  ends === "crlf" && !text.includes("\r") ? text.replaceAll("\n", "\r\n") : text;

/** Half a surrogate pair has no bytes: it would be written as another character. */
export const isSpeakable = (text: string): boolean => !/\p{Surrogate}/u.test(text);

export function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  // The last line end ends the last line; it does not begin another.
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function endsOf(text: string): LineEnds {
  const all = text.match(/\n/g)?.length ?? 0;
  const crlf = text.match(/\r\n/g)?.length ?? 0;
  return crlf === 0 ? "lf" : crlf === all ? "crlf" : "mixed";
}
