/** The one line `exec` ends with, and the second one that each root gets once. Pure. */
import { displayName } from "../core/index.js";
import type { ExecResult } from "../workspace/index.js";
import { count, duration } from "./amounts.js";
import { displayRoot, oneLine } from "./spelling.js";
import type { Style } from "./style.js";

/** Nothing where nothing changed and everything was captured. */
export function execLine(result: ExecResult, undoOnFailure: boolean, style: Style): string {
  const turn = `t${result.turn}`;
  if (result.changes.length === 0 && result.protected) return "";
  const facts = [
    turn,
    ...amounts(result),
    `in ${duration(result.durationMs)}`,
    ...(result.checkpoints.length > 2 ? [count(result.checkpoints.length, "checkpoint")] : []),
  ].join(", ");
  return `looprig: ${facts}. ${wayBack(result, undoOnFailure, style)}\n`;
}

/** `12 files changed, 1 deleted`: changed are those that are there now. */
function amounts({ changes }: ExecResult): readonly string[] {
  const files = changes.filter(({ entry }) => entry !== "directory");
  if (files.length === 0) {
    return changes.length === 0
      ? ["changes unknown"]
      : [`${count(changes.length, "directory", "directories")} changed`];
  }
  const deleted = files.filter(({ kind }) => kind === "deleted").length;
  const changed = files.length - deleted;
  if (changed === 0) return [`${count(deleted, "file")} deleted`];
  return [`${count(changed, "file")} changed`, ...(deleted === 0 ? [] : [`${deleted} deleted`])];
}

function wayBack(result: ExecResult, undoOnFailure: boolean, style: Style): string {
  const command = (text: string): string => style.bold(text);
  if (!result.protected) {
    return `${style.yellow("Not protected")}: it could not be captured completely, so undo is refused; ${command("looprig log")} marks it.`;
  }
  if (result.undone)
    return `Taken back, because it ended with ${result.exitCode}. ${command("looprig redo")} puts it back.`;
  const lost = result.changes.filter(({ captured }) => !captured);
  if (undoOnFailure && result.exitCode !== 0) {
    const { undoFailure } = result;
    if (undoFailure !== undefined && undoFailure.code !== "undo.needs_consent") {
      return `Not taken back, though it ended with ${result.exitCode}: ${oneLine(undoFailure.message)}.`;
    }
    return lost.length > 0
      ? `Not all of it was taken back, though it ended with ${result.exitCode}: ${uncaptured(lost)}.`
      : `Not taken back, though it ended with ${result.exitCode}: ${command("looprig undo")} says why and asks.`;
  }
  if (lost.length === 0) return `${command("looprig undo")} takes it back.`;
  return lost.length === result.changes.length
    ? `Undo cannot take it back: ${uncaptured(lost)}.`
    : `${command("looprig undo")} takes back the rest: ${uncaptured(lost)}.`;
}

/** `.env was not captured`. */
function uncaptured(lost: ExecResult["changes"]): string {
  const [first] = lost;
  return lost.length === 1 && first !== undefined
    ? `${displayName(first.path)} was not captured`
    : `${count(lost.length, "path")} were not captured`;
}

export const coverageLine = (root: string, home: string): string =>
  `looprig: only files below ${displayRoot(root, home)} are covered; .git is not. This line is shown once.\n`;
