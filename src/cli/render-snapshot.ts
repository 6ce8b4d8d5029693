/** What `snapshot` took. Pure. */
import type { Checkpoint } from "../workspace/index.js";
import { count } from "./amounts.js";
import { oneLine } from "./spelling.js";
import type { Style } from "./style.js";

export function snapshotText(taken: Checkpoint & { readonly unchanged: boolean }, style: Style): string {
  const name = `c${taken.number}`;
  const label = taken.label === undefined ? "" : ` "${oneLine(taken.label)}"`;
  const same = taken.unchanged ? ", nothing changed since the last one" : "";
  const missing = (taken.omitted["unreadable"] ?? 0) + (taken.omitted["unstable"] ?? 0);
  const partial =
    missing === 0
      ? ""
      : `${style.yellow("!")} ${count(missing, "path")} could not be read and ${missing === 1 ? "is" : "are"} not in it.\n`;
  return `${name}${label}, ${count(taken.files, "file")}${same}. ${style.bold(`looprig restore ${name}`)} brings them back.\n${partial}`;
}
