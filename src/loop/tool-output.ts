/**
 * What of a tool's answer is kept and shown to the model. Bounded, since a tool may answer with anything; keeping the whole
 * of it somewhere is the tool's business. Pure.
 */
import type { Json } from "../core/index.js";
import { textMember } from "./foreign.js";
import { isShallow } from "./json-depth.js";
import { wellFormed } from "./plain-text.js";

/** About 12 000 tokens: more drowns what the model was doing. */
export const resultCharsMax = 50_000;
export const dataCharsMax = 200_000;
/** The start of an output says what it is, the end how it ended. */
const headShare = 0.6;

/** `kept` says where all of it is. */
export function boundedText(text: string, charsMax = resultCharsMax, kept = ""): string {
  if (text.length <= charsMax) return wellFormed(text);
  const head = Math.floor(charsMax * headShare);
  const tail = charsMax - head;
  const leftOut = text.length - head - tail;
  const start = wholeCharacters(text.slice(0, head));
  const end = wholeCharacters(text.slice(text.length - tail));
  return `${start}\n[${leftOut} of ${text.length} characters are left out here${kept}]\n${end}`;
}

/** Data as it is journaled; undefined when it is too large or deep to be. */
export function boundedData(data: Json | undefined): Json | undefined {
  if (data === undefined || !isShallow(data)) return undefined;
  return JSON.stringify(data).length <= dataCharsMax ? data : undefined;
}

/** A cut may part the halves of a surrogate pair; what is left of it is dropped. */
const wholeCharacters = (text: string): string =>
  wellFormed(text.replace(/[\ud800-\udbff]$/, "").replace(/^[\udc00-\udfff]/, ""));

/** What the model is told of an error. */
export function errorText(error: unknown): string {
  if (typeof error === "string" && error !== "") return boundedText(error);
  const words = textMember(error, "message") || textMember(error, "name");
  if (words === undefined || words === "") return "The tool threw what is no error.";
  const hint = textMember(error, "hint");
  return boundedText(hint === undefined ? words : `${words}\n${hint}`);
}
