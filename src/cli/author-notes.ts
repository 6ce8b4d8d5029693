/** What is said beside a path of the call that left it as it is. Pure. */
import type { SessionId } from "../core/index.js";
import type { ChangedBy } from "../workspace/index.js";
import { fit } from "./columns.js";
import { oneLine } from "./spelling.js";

/** U1: what a process left behind may have been written by someone else meanwhile. */
export const unproven = "in the window, not proven ours";

/** Columns of a command: enough to tell it from others beside it. */
const commandMax = 40;

/** `Edit`, `Bash: npm run format`; of a command that is the whole turn nothing, since the turn is named by it. */
export function callNote(by: ChangedBy): string | undefined {
  if (by.kind === "foreign" || by.tool === undefined) return undefined;
  const { tool, command } = by;
  return command === undefined ? oneLine(tool) : `${oneLine(tool)}: ${fit(oneLine(command), commandMax)}`;
}

/**
 * `b71c t3 at the same time`: who else than turn `told` was at work on the path, so that nobody knows which of them wrote
 * it (U1).
 */
export function overlapNote(
  by: ChangedBy,
  sessionName: (id: SessionId) => string,
  told = by.kind === "foreign" ? undefined : by.turn,
): string | undefined {
  if (by.kind === "foreign" || by.overlaps === undefined) return undefined;
  const { sessionId, turn, overlaps } = by;
  const all = turn === undefined ? overlaps : [{ sessionId, turn }, ...overlaps];
  const others = all.filter((each) => each.turn !== told).map((each) => `${sessionName(each.sessionId)} t${each.turn}`);
  return `${others.join(", ")} at the same time`;
}

/** Those of the parts that there are. */
export const noteOf = (...parts: readonly (string | undefined)[]): string | undefined => {
  const said = parts.filter((part) => part !== undefined);
  return said.length === 0 ? undefined : said.join(", ");
};
