/** Canonical encodings: one value, one sequence of bytes, on every machine and in every release. */
import { createHash } from "node:crypto";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * JSON with the members of every object in code-unit order of their names, no white space, `undefined` members left out
 * (after RFC 8785, whose number and string forms `JSON.stringify` already has). Throws on numbers that are not finite.
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonicalJson).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const object = value as { readonly [key: string]: Json | undefined };
    const members = Object.keys(object)
      .filter((key) => object[key] !== undefined)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`);
    return `{${members.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`Cannot encode ${value} as JSON`);
  return JSON.stringify(value);
}

export const sha256Hex = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");
