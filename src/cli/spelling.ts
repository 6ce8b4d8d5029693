/**
 * Stored text as it may appear on a terminal. Titles, labels and commands come from journals and were written by anyone:
 * control characters and text-direction marks are taken out, line breaks become spaces.
 */
import { displayName } from "../core/index.js";
import { fit } from "./columns.js";

const breaks = /[\s\u0085\u2028\u2029]+/g;
const unsafe = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udfff]/gu;

/** One safe line. */
export const oneLine = (text: string): string => text.replace(breaks, " ").replace(unsafe, "\ufffd").trim();

/** `exec claude` for a command, `"make the tests pass"` for a prompt; cut to `most` columns. */
export const turnTitle = (turn: { readonly kind: "prompt" | "command"; readonly input: string }, most = 48): string =>
  turn.kind === "command" ? fit(`exec ${oneLine(turn.input)}`, most) : `"${fit(oneLine(turn.input), most - 2)}"`;

/** A root for people: `~/calc` below the home directory, quoted where a name needs it. */
export function displayRoot(root: string, home: string): string {
  const below = home !== "" && home !== "/" && (root === home || root.startsWith(`${home}/`));
  return displayName(below ? `~${root.slice(home.length)}` : root);
}

/** A path in the workspace; a directory ends in a slash. */
export const displayPath = (path: string, entry?: string): string =>
  displayName(entry === "directory" ? `${path}/` : path);

/** A word as a shell reads it back. */
export const shellWord = (word: string): string =>
  /^[A-Za-z0-9_./:@%+=,^-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
