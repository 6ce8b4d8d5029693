/** What differs between what was seen of a file and what it holds now, for the model and within bounds. Pure. */
import { createTwoFilesPatch } from "diff";
import { displayName } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { linesOf } from "./text-form.js";

export const differenceCharsMax = 20_000;
const editsMax = 2_000;
const scriptMsMax = 40;

export interface Difference {
  readonly text: string;
  /** Whether whoever knew the old text and reads this knows all of the new one. */
  readonly complete: boolean;
}

/** Without an old text the new one is shown whole, if it is short enough. */
export function differenceOf(path: WorkspacePath, before: string | undefined, now: string): Difference {
  if (before === undefined) {
    const complete = now.length <= differenceCharsMax;
    const shown = complete ? now : now.slice(0, differenceCharsMax);
    const heading = complete ? "It now holds:" : `The first ${shown.length} of its ${now.length} characters:`;
    return { text: now === "" ? "It is empty now." : `${heading}\n${shown}`, complete };
  }
  const name = displayName(path);
  const patch = createTwoFilesPatch(`seen/${name}`, `now/${name}`, before, now, undefined, undefined, {
    ...{ context: 3, maxEditLength: editsMax, timeout: scriptMsMax },
  });
  if (patch === undefined) return differenceOf(path, undefined, now);
  const body = patch.replace(/^=+\n/, "");
  if (body.length <= differenceCharsMax) return { text: `What changed since it was seen:\n${body}`, complete: true };
  const cut = body.slice(0, differenceCharsMax);
  return { text: `The beginning of what changed since it was seen:\n${cut}\n[cut; read the file]`, complete: false };
}

/** The lines around the characters `from` to `to`, with their numbers. */
export function excerpt(text: string, from: number, to: number, context = 3, linesMax = 40): string {
  const first = linesOf(text.slice(0, from)).length - (from > 0 && text[from - 1] !== "\n" ? 1 : 0);
  const last = first + Math.max(0, linesOf(text.slice(from, to)).length - 1);
  const lines = linesOf(text);
  const start = Math.max(0, first - context);
  const end = Math.min(lines.length, last + context + 1, start + linesMax);
  return lines
    .slice(start, end)
    .map((line, i) => numbered(start + i + 1, line))
    .join("\n");
}

const lineCharsMax = 2_000;

export const numbered = (number: number, line: string): string => `${String(number).padStart(6)}\t${shownLine(line)}`;

/** A line as it is shown: without the end of CRLF, and cut where nobody would read on. */
export function shownLine(line: string): string {
  const bare = line.endsWith("\r") ? line.slice(0, -1) : line;
  return bare.length <= lineCharsMax
    ? bare
    : `${bare.slice(0, lineCharsMax)} [${bare.length - lineCharsMax} more characters of this line]`;
}

export const isShownWhole = (line: string): boolean => line.length <= lineCharsMax;
