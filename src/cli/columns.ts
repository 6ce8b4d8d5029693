/** Rows of cells as aligned lines. Width is counted in terminal columns; colour is applied after the padding. */

export type Cell =
  | string
  | {
      readonly text: string;
      readonly paint: (text: string) => string;
      /** It may reach into the columns after it and makes its own no wider. For the last cell of a row. */
      readonly spans?: true;
    };

export interface ColumnOptions {
  /** Before every line. */
  readonly indent?: string;
  /** Between columns: one for all, or one each. Default two spaces. */
  readonly gap?: string | readonly string[];
  /** Columns that are aligned to the right. */
  readonly right?: readonly number[];
  /** Least widths of columns. */
  readonly least?: readonly number[];
}

/** A cell wider than this stands out of its column instead of widening it: one long name must not move every other row. */
const widestCell = 60;

export function columns(rows: readonly (readonly Cell[])[], options: ColumnOptions = {}): string[] {
  const widths: number[] = [...(options.least ?? [])];
  for (const row of rows) {
    row.forEach((cell, i) => {
      const spans = typeof cell !== "string" && cell.spans === true;
      const width = spans ? 0 : displayWidth(textOf(cell));
      widths[i] = Math.max(widths[i] ?? 0, width > widestCell ? 0 : width);
    });
  }
  return rows.map((row) => {
    let last = row.length - 1;
    while (last >= 0 && textOf(row[last] ?? "") === "") last--;
    let line = options.indent ?? "";
    for (let i = 0; i <= last; i++) {
      const cell = row[i] ?? "";
      const text = textOf(cell);
      const padding = " ".repeat(Math.max(0, (widths[i] ?? 0) - displayWidth(text)));
      const painted = typeof cell === "string" || text === "" ? text : cell.paint(text);
      const right = options.right?.includes(i) === true;
      line += right ? padding + painted : i === last ? painted : painted + padding;
      if (i < last) line += gapAfter(i, options.gap);
    }
    return line;
  });
}

const textOf = (cell: Cell): string => (typeof cell === "string" ? cell : cell.text);

const gapAfter = (i: number, gap: ColumnOptions["gap"]): string =>
  gap === undefined ? "  " : typeof gap === "string" ? gap : (gap[i] ?? "  ");

// Marks that combine with the character before them, and the blocks whose characters take two columns.
const combining = /\p{Mn}|\p{Me}|\p{Cf}/u;
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const plain = /^[\u0020-\u007e]*$/;

/** Terminal columns the text takes. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += combining.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** The text, cut with an ellipsis where it is wider than `most` columns. */
export function fit(text: string, most: number): string {
  if (displayWidth(text) <= most) return text;
  let kept = "";
  let width = 1;
  for (const character of text) {
    width += displayWidth(character);
    if (width > most) break;
    kept += character;
  }
  return `${kept}…`;
}
