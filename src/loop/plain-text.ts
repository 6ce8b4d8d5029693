/**
 * Text that every server takes: no half surrogate pairs, which JSON can escape and many parsers refuse. One of them in a
 * conversation would make every later call of the model fail.
 */
import type { Json } from "../core/index.js";

const halfPair = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export const wellFormed = (text: string): string => text.replaceAll(halfPair, "\ufffd");

export function wellFormedJson(value: Json): Json {
  if (typeof value === "string") return wellFormed(value);
  if (typeof value !== "object" || value === null) return value;
  if (isList(value)) return value.map(wellFormedJson);
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [wellFormed(name), item === undefined ? item : wellFormedJson(item)]),
  );
}

/** `Array.isArray` does not see through `readonly`. */
const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

/** At most `charsMax` characters, with a sign that there were more. */
export const shortened = (text: string, charsMax: number): string =>
  wellFormed(text.length > charsMax ? `${text.slice(0, charsMax)}…` : text);
