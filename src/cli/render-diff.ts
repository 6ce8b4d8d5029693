/** Unified differences with colour, and their summary. Pure. */
import type { FileDiff } from "../workspace/index.js";
import { count } from "./amounts.js";
import { changeLines } from "./change-lines.js";
import type { Style } from "./style.js";

export function colourDiff(text: string, style: Style): string {
  return text.replace(/^.*$/gm, (line) => {
    if (line.startsWith("+++") || line.startsWith("---")) return style.bold(line);
    if (line.startsWith("@@")) return style.cyan(line);
    if (line.startsWith("+")) return style.green(line);
    return line.startsWith("-") ? style.red(line) : line;
  });
}

export function statText(diffs: readonly FileDiff[], style: Style): string {
  if (diffs.length === 0) return "";
  const files = diffs.filter(({ entry }) => entry !== "directory");
  const added = files.reduce((sum, diff) => sum + diff.added, 0);
  const removed = files.reduce((sum, diff) => sum + diff.removed, 0);
  const lines = changeLines(
    diffs.map((diff) => ({ path: diff.path, kind: diff.kind, entry: diff.entry, lines: diff })),
    style,
  );
  const total = files.length === 0 ? count(diffs.length, "directory", "directories") : count(files.length, "file");
  return [...lines, `${total}, ${style.green(`+${added}`)} ${style.red(`-${removed}`)}`]
    .map((line) => `${line}\n`)
    .join("");
}
