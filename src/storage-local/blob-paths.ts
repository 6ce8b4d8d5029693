/**
 * Where the blob of a key lies, relative to the blobs directory: its components as directories, the last as a file, made
 * distinct on every volume.
 *
 *  - The file's name starts with "@", which no directory's does: key "a" and key "a/b" do not want the same name.
 *  - An upper-case letter is written as "^" and the lower-case one, for volumes that fold case.
 *  - A component of more than 200 characters is cut into directories whose names end with "+", for the 255 bytes of a name.
 */
import type { StorageKey } from "../storage/index.js";

const pieceCharsMax = 200;

export function blobPath(key: StorageKey): readonly string[] {
  const parts = key.split("/").map((part) => cut(part.replace(/[A-Z]/g, (letter) => `^${letter.toLowerCase()}`)));
  const last = parts.at(-1) ?? [];
  return [...parts.slice(0, -1).flat(), ...last.slice(0, -1), `@${last.at(-1) ?? ""}`];
}

/** The beginning of the keys that lie in the directory with this path. */
export const keyPrefixOf = (directories: readonly string[]): string => unfold(folded(directories));

/** The key of a file in the directory with this path, or undefined when it is no blob. */
export const keyOf = (directories: readonly string[], file: string): StorageKey | undefined =>
  file.startsWith("@") ? unfold(folded(directories) + file.slice(1)) : undefined;

const folded = (directories: readonly string[]): string =>
  directories.map((name) => (name.endsWith("+") ? name.slice(0, -1) : `${name}/`)).join("");

const unfold = (text: string): string => text.replace(/\^([a-z])/g, (_, letter: string) => letter.toUpperCase());

function cut(part: string): string[] {
  const pieces: string[] = [];
  let rest = part;
  while (rest.length > pieceCharsMax) {
    // Not between "^" and its letter: each piece can be read by itself.
    const at = rest[pieceCharsMax - 1] === "^" ? pieceCharsMax - 1 : pieceCharsMax;
    pieces.push(`${rest.slice(0, at)}+`);
    rest = rest.slice(at);
  }
  return [...pieces, rest];
}
