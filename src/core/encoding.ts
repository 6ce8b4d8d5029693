/** Canonical encodings: one value, one sequence of bytes, on every machine and in every release. */
import { createHash } from "node:crypto";

/** A value that JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * JSON with the members of every object in code-unit order of their names, no white space, `undefined` members left out
 * (after RFC 8785, whose number and string forms `JSON.stringify` already has). Throws a `TypeError` for what JSON cannot
 * say: numbers that are not finite, bigints, functions, symbols, a bare `undefined`. Dates are the caller's to turn into text.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const object = value as { readonly [key: string]: unknown };
    const members = Object.keys(object)
      .filter((key) => object[key] !== undefined)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key])}`);
    return `{${members.join(",")}}`;
  }
  if (typeof value === "string" || typeof value === "boolean" || value === null) return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  throw new TypeError(`Cannot encode ${typeof value === "number" ? value : `a ${typeof value}`} as JSON`);
}

export const sha256Hex = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");
