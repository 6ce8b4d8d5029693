/** What is wrong with an input, in words that a model can act on. A hostile input makes them no longer. */
import type { StandardSchemaV1 } from "@standard-schema/spec";

const issuesMax = 10;
const charactersMax = 300;
const depthMax = 12;

/** One line each, at most ten and one that says how many more there are. Takes whatever a schema answered. */
export function issuesInWords(issues: unknown): readonly string[] {
  if (!Array.isArray(issues) || issues.length === 0) return ["the input does not fit the schema"];
  // The same fault is often reported once per branch of a union.
  const lines = [...new Set(issues.slice(0, 10 * issuesMax).map(lineOf))];
  const more = issues.length > 10 * issuesMax ? "many" : String(lines.length - issuesMax);
  return lines.length <= issuesMax ? lines : [...lines.slice(0, issuesMax), `and ${more} more`];
}

/** Text of at most `max` characters, which says when it was cut. */
export const bounded = (text: string, max = charactersMax): string =>
  text.length <= max ? text : `${text.slice(0, max)}… (${text.length - max} characters more)`;

function lineOf(issue: unknown): string {
  const { message, path } = (issue ?? {}) as Partial<StandardSchemaV1.Issue>;
  const words = typeof message === "string" && message !== "" ? message : "is not as the schema wants it";
  return bounded(`${placeOf(path)}: ${words}`);
}

function placeOf(path: unknown): string {
  if (!Array.isArray(path) || path.length === 0) return "the input";
  const place = path
    .slice(0, depthMax)
    .map((segment: unknown) => keyOf(segment))
    .map((key) =>
      typeof key === "number"
        ? `[${key}]`
        : /^[\w$-]+$/.test(key)
          ? `.${key}`
          : `[${JSON.stringify(bounded(key, 80))}]`,
    )
    .join("");
  return `${place.replace(/^\./, "")}${path.length > depthMax ? "…" : ""}`;
}

function keyOf(segment: unknown): string | number {
  const key = typeof segment === "object" && segment !== null && "key" in segment ? segment.key : segment;
  return typeof key === "number" ? key : String(key);
}
