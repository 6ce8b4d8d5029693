/**
 * Values that code of others made (models, providers, tools), read without trust: a getter may throw, a proxy may have been
 * revoked, a member may be of any type. Whatever is wrong with one is that there is nothing to read. Pure.
 */

/** The member of an object or function; undefined where there is none, or none that can be read. */
export function memberOf(value: unknown, name: string): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  try {
    return (value as Readonly<Record<string, unknown>>)[name];
  } catch {
    return undefined;
  }
}

/** The member, if it is a text. */
export function textMember(value: unknown, name: string): string | undefined {
  const member = memberOf(value, name);
  return typeof member === "string" ? member : undefined;
}

/** A number as headers and error codes spell it; undefined for anything else. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value !== "number" && (typeof value !== "string" || value.trim() === "")) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}
