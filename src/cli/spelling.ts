/**
 * Stored text as it may appear on a terminal. Titles, labels and commands come from journals and were written by anyone:
 * control characters and text-direction marks are taken out, line breaks become spaces.
 */
import { displayName, nameToBytes } from "../core/index.js";
import { fit } from "./columns.js";

const breaks = /[\s\u0085\u2028\u2029]+/g;
const unsafe = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udfff]/gu;

/** The text with nothing in it that a terminal would act on; its spaces stay, for what is typed again. */
export const visible = (text: string): string => text.replace(unsafe, "\ufffd");

/** Text of several lines, with its tabs; carriage returns go, since a terminal would write over what it shows. */
export const prose = (text: string): string =>
  text
    .replaceAll("\r", "")
    .replace(unsafe, (character) => (character === "\n" || character === "\t" ? character : "\ufffd"));

/** One safe line. */
export const oneLine = (text: string): string => visible(text.replace(breaks, " ")).trim();

/** The title of what a program did by itself while it had a workspace open: no command that was run. */
const ownProgram = "this program";

/** `exec claude` for a command, `"make the tests pass"` for a prompt; cut to `most` columns. */
export function turnTitle(
  { kind, input }: { readonly kind: "prompt" | "command"; readonly input: string },
  most = 48,
): string {
  if (kind === "prompt") return `"${fit(oneLine(input), most - 2)}"`;
  return input === ownProgram ? ownProgram : fit(`exec ${oneLine(input)}`, most);
}

/** A root for people: `~/calc` below the home directory, quoted where a name needs it. */
export function displayRoot(root: string, home: string): string {
  const below = home !== "" && home !== "/" && (root === home || root.startsWith(`${home}/`));
  return displayName(below ? `~${root.slice(home.length)}` : root);
}

/** A path in the workspace; a directory ends in a slash. */
export const displayPath = (path: string, entry?: string): string =>
  displayName(entry === "directory" ? `${path}/` : path);

const invisible =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udfff]/gu;

/** A word as a shell reads it back. What a terminal could not show stands as bytes in `$'…'`. */
export function shellWord(word: string): string {
  if (/^[A-Za-z0-9_./:@%+=,^-]+$/.test(word)) return word;
  if (word.search(invisible) === -1) return `'${word.replaceAll("'", `'\\''`)}'`;
  const bytes = (character: string): string =>
    [...nameToBytes(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  return `$'${word.replace(/['\\]/g, "\\$&").replace(invisible, bytes)}'`;
}
