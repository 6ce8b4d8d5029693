/**
 * Line differences of one path, for people. Text is compared by lines (Myers' algorithm, npm `diff`); what is not text,
 * or too large to compare within reason, is only said to differ. The package is some twenty files, so it is loaded by those
 * who compare.
 */
import { displayName, isLooprigError } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { TreeChange, TreeEntry } from "../workspace-store/index.js";
import type { ChangedBy } from "./changed-by.js";
import type { Change, EntryKind, FileDiff } from "./contracts.js";

/** Gives the bytes of a file entry on one side of the comparison. */
export type ReadSide = (entry: Extract<TreeEntry, { kind: "file" }>, change: TreeChange) => AsyncIterable<Uint8Array>;

const comparedBytesMax = 1024 * 1024;
const textBytesMax = 1024 * 1024;
/** Where two files differ in more places than this, an exact script costs more than anybody reads. */
const editsMax = 2_000;
const scriptMsMax = 200;

type Side = { readonly text: string } | "absent" | "binary" | "large" | "lost";

export const changeKind = (change: Pick<TreeChange, "before" | "after">): Change["kind"] =>
  change.before === undefined ? "added" : change.after === undefined ? "deleted" : "edited";

export function entryKind(change: Pick<TreeChange, "before" | "after">): EntryKind {
  const kind = (change.after ?? change.before)?.kind;
  return kind === "directory" || kind === "symlink" ? kind : "file";
}

export const describeChange = (change: TreeChange, by: ChangedBy): Change => ({
  path: change.path,
  kind: changeKind(change),
  entry: entryKind(change),
  captured: change.before?.kind !== "omitted" && change.after?.kind !== "omitted",
  by,
});

/** Counts lines at once and keeps no text: `text()` reads the sides again. */
export async function fileDiff(
  change: TreeChange,
  from: ReadSide,
  to: ReadSide,
  options: Abortable = {},
): Promise<FileDiff> {
  const kind = changeKind(change);
  const sides = async (): Promise<[Side, Side]> => [
    await side(change.before, change, from, options),
    await side(change.after, change, to, options),
  ];
  const [before, after] = await sides();
  const counts = await count(before, after);
  return Object.freeze({
    path: change.path,
    kind,
    entry: entryKind(change),
    binary: counts === undefined,
    added: counts?.added ?? 0,
    removed: counts?.removed ?? 0,
    text: async () => await render(change, kind, ...(await sides())),
  });
}

async function side(
  entry: TreeEntry | undefined,
  change: TreeChange,
  read: ReadSide,
  options: Abortable,
): Promise<Side> {
  if (entry === undefined || entry.kind === "directory" || entry.kind === "omitted") return "absent";
  if (entry.kind === "symlink") return { text: entry.target };
  if (entry.size > comparedBytesMax) return "large";
  const parts: Uint8Array[] = [];
  try {
    for await (const part of read(entry, change)) {
      options.signal?.throwIfAborted();
      parts.push(part);
    }
  } catch (error) {
    // A listing goes on around damage; whoever asks for the bytes themselves is told.
    if (isLooprigError(error, "snapshot.object_damaged", "snapshot.object_missing")) return "lost";
    throw error;
  }
  const bytes = Buffer.concat(parts);
  // git's rule of thumb: a NUL in the first 8 000 bytes is no text.
  return bytes.subarray(0, 8_000).includes(0) ? "binary" : { text: bytes.toString("utf8") };
}

async function count(before: Side, after: Side): Promise<{ added: number; removed: number } | undefined> {
  const [a, b] = [textOf(before), textOf(after)];
  if (a === undefined || b === undefined) return undefined;
  if (a === "" || b === "") return { added: lines(b), removed: lines(a) };
  const { diffLines } = await import("diff");
  let added = 0;
  let removed = 0;
  const parts = diffLines(a, b, { maxEditLength: editsMax, timeout: scriptMsMax });
  if (parts === undefined) return { added: lines(b), removed: lines(a) };
  for (const part of parts) {
    if (part.added) added += part.count;
    else if (part.removed) removed += part.count;
  }
  return { added, removed };
}

const textOf = (side: Side): string | undefined =>
  side === "absent" ? "" : typeof side === "string" ? undefined : side.text;

const lines = (text: string): number => (text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0));

async function render(change: TreeChange, kind: Change["kind"], before: Side, after: Side): Promise<string> {
  const name = displayName(change.path);
  const [from, to] = [change.before, change.after];
  const heading: string[] = [];
  if (from?.kind !== to?.kind && from !== undefined && to !== undefined)
    heading.push(`${name}: ${from.kind} became ${to.kind}`);
  if (from?.kind === "file" && to?.kind === "file" && from.mode !== to.mode) {
    heading.push(`${name}: mode ${octal(from.mode)} became ${octal(to.mode)}`);
  }
  const only = (to ?? from)?.kind;
  if (only === "directory" && (from === undefined || to === undefined)) heading.push(`${name}/: directory ${kind}`);
  else if (from?.kind === "directory" && to?.kind === "directory") {
    heading.push(`${name}/: mode ${octal(from.mode)} became ${octal(to.mode)}`);
  }
  const [a, b] = [textOf(before), textOf(after)];
  if (a === undefined || b === undefined) heading.push(`${name}: ${incomparable(before, after)}, ${kind}`);
  else if (a !== b) {
    const { createTwoFilesPatch } = await import("diff");
    const patch = createTwoFilesPatch(
      from === undefined ? "/dev/null" : `a/${name}`,
      to === undefined ? "/dev/null" : `b/${name}`,
      a,
      b,
      undefined,
      undefined,
      { context: 3, maxEditLength: editsMax, timeout: scriptMsMax },
    );
    const body = patch?.replace(/^=+\n/, "") ?? `${name}: differs in too many places to show`;
    heading.push(
      body.length > textBytesMax ? `${body.slice(0, textBytesMax)}\n… cut after ${textBytesMax} characters` : body,
    );
  }
  return heading.map((part) => (part.endsWith("\n") ? part : `${part}\n`)).join("");
}

function incomparable(before: Side, after: Side): string {
  if (before === "lost" || after === "lost") return "content missing or damaged in the store";
  return before === "large" || after === "large" ? "too large to compare by lines" : "binary";
}

const octal = (mode: number): string => mode.toString(8).padStart(4, "0");
