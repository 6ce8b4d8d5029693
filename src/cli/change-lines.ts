/** Changed paths as aligned lines: `M src/parse.js  +2 -1     Edit`. Pure. */
import { columns } from "./columns.js";
import type { Cell } from "./columns.js";
import { displayPath } from "./spelling.js";
import type { Style } from "./style.js";

export interface ChangeLine {
  readonly path: string;
  readonly kind: "added" | "edited" | "deleted";
  readonly entry?: string | undefined;
  readonly lines?: LineCount | undefined;
  /** What did it, or why it stands out. */
  readonly note?: string | undefined;
}

export interface LineCount {
  readonly added: number;
  readonly removed: number;
  readonly binary: boolean;
}

const letters = { added: "A", edited: "M", deleted: "D" } as const;

export function changeLines(changes: readonly ChangeLine[], style: Style): string[] {
  return columns(
    changes.map((change): Cell[] => [
      { text: letters[change.kind], paint: paintOf(change.kind, style) },
      displayPath(change.path, change.entry),
      countCell(change.lines, style),
      { text: change.note ?? "", paint: style.dim },
    ]),
    { indent: "  ", gap: [" ", "  ", "  "], least: [1, 0, 8] },
  );
}

/** `+2 -1`, `binary`, or nothing where no line changed. */
export function lineCount(lines: LineCount | undefined): string {
  if (lines === undefined) return "";
  if (lines.binary) return "binary";
  return lines.added === 0 && lines.removed === 0 ? "" : `+${lines.added} -${lines.removed}`;
}

export const countCell = (lines: LineCount | undefined, style: Style): Cell => ({
  text: lineCount(lines),
  paint: (text) =>
    text.replace(
      /^(\+\d+) (-\d+)$/,
      (_, added: string, removed: string) => `${style.green(added)} ${style.red(removed)}`,
    ),
});

const paintOf = (kind: ChangeLine["kind"], style: Style): ((text: string) => string) =>
  kind === "added" ? style.green : kind === "deleted" ? style.red : style.yellow;
