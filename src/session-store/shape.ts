/**
 * Shapes: what stored JSON must look like to become a typed value. A shape takes `unknown` and returns the value or throws
 * a `Misfit`. The types tie a shape to its interface: a member without a shape, or one that is optional in only one of
 * the two, does not compile.
 *
 * Members nobody knows are dropped (docs/formats/journal.md, Strictness). Misfits name places and kinds, never values:
 * they end up in logs.
 */
import type { Json } from "../core/index.js";

/** "newer": well formed, but in words that only a later release knows. "damaged": nothing any release wrote. */
export class Misfit extends Error {
  constructor(
    readonly verdict: "damaged" | "newer",
    readonly where: string,
    readonly wanted: string,
  ) {
    super(`${where} is not ${wanted}`);
  }
}

export type Shape<T> = (value: unknown, where: string) => T;

export interface OptionalShape<T> {
  readonly optional: Shape<T>;
}
export const optional = <T>(shape: Shape<T>): OptionalShape<T> => ({ optional: shape });

export type Members<T> = {
  readonly [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K>
    ? OptionalShape<Exclude<T[K], undefined>>
    : Shape<T[K]>;
};

function object(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Misfit("damaged", where, "an object");
  }
  return value as Readonly<Record<string, unknown>>;
}

/** An object with these members; others are dropped. */
export function members<T extends object>(fields: Members<T>): Shape<T> {
  const shapes = Object.entries<Shape<unknown> | OptionalShape<unknown>>(fields);
  return (value, where) => {
    const given = object(value, where);
    const fitted: [string, unknown][] = [];
    for (const [name, shape] of shapes) {
      const member = Object.hasOwn(given, name) ? given[name] : undefined;
      if (typeof shape === "function") fitted.push([name, shape(member, `${where}.${name}`)]);
      else if (member !== undefined) fitted.push([name, shape.optional(member, `${where}.${name}`)]);
    }
    return Object.fromEntries(fitted) as T;
  };
}

/** One of several objects, told apart by the word in member `tag`. */
export function variants<Tag extends string, T extends { readonly [K in Tag]: string }>(
  tag: Tag,
  shapes: { readonly [Word in T[Tag]]: Shape<Extract<T, { readonly [K in Tag]: Word }>> },
): Shape<T> {
  const word = words<T[Tag]>(allWords(shapes));
  return (value, where) => shapes[word(object(value, where)[tag], `${where}.${tag}`)](value, where);
}

/** The keys of a table, for `words`. */
export const allWords = <T extends string>(table: Readonly<Record<T, unknown>>): Readonly<Record<T, true>> =>
  Object.fromEntries(Object.keys(table).map((word) => [word, true])) as Record<T, true>;

/** One of a fixed list of words, written as the keys of an object so that the compiler misses none. */
export function words<T extends string>(all: Readonly<Record<T, true>>): Shape<T> {
  return (value, where) => {
    const word = text(value, where);
    if (!Object.hasOwn(all, word)) throw new Misfit("newer", where, "a word this release knows");
    return word as T;
  };
}

export const text: Shape<string> = (value, where) => {
  if (typeof value !== "string") throw new Misfit("damaged", where, "text");
  return value;
};

/** Text of a given form. `T` is the brand or template type that the form justifies. */
export const matching =
  <T extends string>(form: RegExp, wanted: string): Shape<T> =>
  (value, where) => {
    const given = text(value, where);
    if (!form.test(given)) throw new Misfit("damaged", where, wanted);
    return given as T;
  };

export const integer: Shape<number> = (value, where) => {
  if (!Number.isSafeInteger(value)) throw new Misfit("damaged", where, "an integer");
  return value as number;
};

export const count: Shape<number> = (value, where) => {
  if (integer(value, where) < 0) throw new Misfit("damaged", where, "an integer from 0");
  return value as number;
};

export const flag: Shape<boolean> = (value, where) => {
  if (typeof value !== "boolean") throw new Misfit("damaged", where, "true or false");
  return value;
};

/** The one form `Date.prototype.toISOString` writes. */
export const time: Shape<Date> = (value, where) => {
  const given = text(value, where);
  const date = new Date(given);
  if (Number.isNaN(date.getTime()) || date.toISOString() !== given) throw new Misfit("damaged", where, "a time in UTC");
  return date;
};

export const json: Shape<Json> = (value, where) => {
  if (value === undefined) throw new Misfit("damaged", where, "present");
  return value as Json;
};

export const nullable =
  <T>(shape: Shape<T>): Shape<T | null> =>
  (value, where) =>
    value === null ? null : shape(value, where);

export const listOf =
  <T>(shape: Shape<T>): Shape<readonly T[]> =>
  (value, where) => {
    if (!Array.isArray(value)) throw new Misfit("damaged", where, "a list");
    return value.map((item, index) => shape(item, `${where}[${index}]`));
  };

/** An object used as a map: any names, one shape for the values. Names are data, so a misfit does not repeat them. */
export const mapOf =
  <T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> =>
  (value, where) =>
    Object.fromEntries(
      Object.entries(object(value, where)).map(([name, item]) => [name, shape(item, `a value of ${where}`)]),
    );
