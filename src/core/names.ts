/**
 * File names are bytes; ours are strings. A valid UTF-8 name is itself. In any other name each byte that does not decode
 * stands as the lone surrogate U+DC80..U+DCFF (the scheme of Python's PEP 383): no valid name ever decodes to one, so the
 * mapping is reversible, `JSON.stringify` keeps it (as \udcXX), and almost every name takes the fast path untouched.
 */

const escaped = /[\udc80-\udcff]/;
// The `u` flag makes a *lone* surrogate match here while a valid pair does not.
const loneSurrogate = /[\ud800-\udfff]/u;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The string for the bytes of a name. */
export function nameFromBytes(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return escapeInvalid(bytes);
  }
}

/** The bytes of a name or path. Inverse of `nameFromBytes`; valid strings become their UTF-8. */
export function nameToBytes(name: string): Buffer {
  if (!loneSurrogate.test(name)) return Buffer.from(name, "utf8");
  const parts: Buffer[] = [];
  let start = 0;
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (code >= 0xd800 && code <= 0xdbff && isLow(name.charCodeAt(i + 1))) i++;
    else if (code >= 0xdc80 && code <= 0xdcff) {
      parts.push(Buffer.from(name.slice(start, i), "utf8"), Buffer.of(code - 0xdc00));
      start = i + 1;
    }
  }
  parts.push(Buffer.from(name.slice(start), "utf8"));
  return Buffer.concat(parts);
}

/** What the file system is given: the string itself, or bytes where a string could not say it. */
export const toFsPath = (path: string): string | Buffer => (loneSurrogate.test(path) ? nameToBytes(path) : path);

/** Whether the name holds bytes that are not UTF-8. */
export const isEscapedName = (name: string): boolean => escaped.test(name) && loneSurrogate.test(name);

/** Orders names by their bytes, which is what canonical encodings use and UTF-16 order is not. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // Below the surrogates UTF-16 order is UTF-8 order; at or above them only the bytes can tell.
    if (x < 0xd800 && y < 0xd800) return x - y;
    return Buffer.compare(nameToBytes(a), nameToBytes(b));
  }
  return a.length - b.length;
}

/** A spelling for people and terminals: control, invisible and direction-changing characters, backslashes and foreign bytes as C escapes, in quotes when any was needed. */
export function displayName(name: string): string {
  const body = name.replace(
    /[\u0000-\u001f\u007f-\u009f"\\\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udfff]/gu,
    (c) => {
      const code = c.charCodeAt(0);
      const short = shortEscapes[c];
      if (short !== undefined) return short;
      if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`;
      return `\\u${code.toString(16).padStart(4, "0")}`;
    },
  );
  return body !== name || /^\s|\s$/.test(name) ? `"${body}"` : name;
}

const shortEscapes: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  '"': '\\"',
  "\\": "\\\\",
};

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Decodes valid sequences as they are and every other byte as its surrogate. */
function escapeInvalid(bytes: Uint8Array): string {
  let out = "";
  let i = 0;
  while (i < bytes.length) {
    const length = sequenceLength(bytes, i);
    if (length === 0) {
      out += String.fromCharCode(0xdc00 + (bytes[i] as number));
      i++;
    } else {
      out += utf8.decode(bytes.subarray(i, i + length));
      i += length;
    }
  }
  return out;
}

/** Length of the valid UTF-8 sequence at `i`, or 0. */
function sequenceLength(bytes: Uint8Array, i: number): number {
  const first = bytes[i] as number;
  const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length === 0 || i + length > bytes.length) return 0;
  try {
    utf8.decode(bytes.subarray(i, i + length));
    return length;
  } catch {
    return 0;
  }
}
