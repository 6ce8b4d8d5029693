/**
 * Reads a name that people copied from our output. What `displayName` wrote in quotes is understood; everything else is the
 * name itself. Only the exact spelling counts: `"notes"` in quotes is what `displayName` never writes, so it is taken raw.
 */
import { displayName } from "../core/index.js";

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };

export function readName(given: string): string {
  if (given.length < 2 || !given.startsWith('"') || !given.endsWith('"')) return given;
  const name = given
    .slice(1, -1)
    .replace(/\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|([nrt"\\]))/g, (_, byte?: string, unit?: string, short?: string) =>
      byte !== undefined
        ? String.fromCharCode(0xdc00 + Number.parseInt(byte, 16))
        : unit !== undefined
          ? String.fromCharCode(Number.parseInt(unit, 16))
          : (escapes[short ?? ""] ?? ""),
    );
  return displayName(name) === given ? name : given;
}
