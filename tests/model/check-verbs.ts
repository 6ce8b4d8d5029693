/**
 * Whether what undo, redo or restore did is what the contract asks for: which entry, which paths, which bytes, what the receipt
 * says of it, and that nothing is lost by it.
 */
import { expect } from "vitest";
import type { RestoreReceipt, Workspace } from "../../src/workspace/index.js";
import { isBlocked, withWrites } from "./contract.js";
import type { Contract, Entry, Expected, Record } from "./contract.js";
import type { Verb } from "./commands.js";
import { difference, isBelow, isDirectory, isIn, printed, sameNode } from "./nodes.js";
import type { Disk, Node, Nodes } from "./nodes.js";

/** A tree that has a name. `since`: its place on the clock, where records after it count for sure. */
export interface Named {
  readonly name: string;
  readonly nodes: Nodes;
  readonly since: number;
}

/** Which entry the verb is about in a tree, and what it is to do. */
export type Choose = (live: Nodes) => { readonly entry: Entry; readonly plan: Expected } | undefined;

export interface Done {
  readonly receipt: RestoreReceipt | Error;
  readonly before: Disk;
  readonly after: Disk;
  /** The tree that was planned for, where somebody edited it since. */
  readonly unedited?: Nodes;
}

export function checkReversal(
  contract: Contract,
  verb: Verb,
  choose: Choose | undefined,
  { receipt, before, after, unedited }: Done,
): void {
  // The plan was made of the tree before the edit, and this is about that plan.
  const planned = unedited ?? before.nodes;
  const found = choose?.(planned);
  if (found === undefined) {
    expect(receipt).toMatchObject({ result: "nothing" });
    return;
  }
  const { entry, plan } = found;
  const { writes, conflicts, kept } = plan;
  const stops = ("onConflict" in verb && verb.onConflict === "stop") || writes.size === 0;
  if (stops && conflicts.size > 0) {
    expect(receipt).toMatchObject({ result: "conflict", entry: entry.name });
    if (!(receipt instanceof Error)) {
      expect(receipt.conflicts.map(({ path }) => String(path)).sort()).toEqual([...conflicts].sort());
    }
    return;
  }
  if (writes.size === 0) {
    expect(receipt).toMatchObject({ result: kept.size > 0 ? "refused" : "nothing" });
    return;
  }
  const expected = withWrites(before.nodes, writes);
  const touched = difference(planned, withWrites(planned, writes)).map(({ path }) => path);
  const asks = verb.kind === "redo" ? false : verb.includeWindow !== true;
  if (asks && contract.needsConsent(entry, touched)) {
    expect(receipt).toMatchObject({ code: "undo.needs_consent" });
    return;
  }
  const partly = conflicts.size > 0 || verb.paths !== undefined;
  expect(receipt).toMatchObject({ entry: entry.name, result: partly ? "partly" : "done" });
  const modes = (path: string): boolean => !writes.has(path);
  expect(printed(alike(after.nodes, expected, modes)), `${verb.kind} ${entry.name}`).toEqual(printed(expected));
}

export function checkRestore(
  contract: Contract,
  verb: Extract<Verb, { kind: "restore" }>,
  target: Named,
  done: Done,
): void {
  const { receipt, after } = done;
  // What was planned for; if somebody edited it since, the plan does not know.
  const planned = done.unedited ?? done.before.nodes;
  const { exact, paths } = verb;
  const choice = { exact, paths, since: target.since };
  const { must, may } = contract.towards(target.nodes, planned, choice);
  const ofWindows = (path: string, every: boolean): boolean => {
    const now = planned.get(path);
    const by = now === undefined ? [] : contract.explanations(path, now);
    const isWindow = ({ strength }: Record): boolean => strength === "window";
    return by.length > 0 && (every ? by.every(isWindow) : by.some(isWindow));
  };
  const asks = contract.shared && verb.includeWindow !== true;
  if (receipt instanceof Error) {
    expect(receipt).toMatchObject({ code: "undo.needs_consent" });
    expect(asks && [...may.keys()].some((path) => ofWindows(path, false)), "consent is asked for windows").toBe(true);
    return;
  }
  const wrote = new Set<string>([...receipt.written, ...receipt.deleted]);
  for (const path of wrote) {
    if (may.has(path)) {
      const wanted = may.get(path);
      const isNeeded = wanted === undefined && isDirectory(after.nodes.get(path));
      if (!isNeeded) expect([path, after.nodes.get(path)]).toEqual([path, wanted]);
      if (asks && !exact) expect(ofWindows(path, true), `${path} without consent`).toBe(false);
    } else {
      const needed = [...wrote].some((other) => isBelow(other, path) && after.nodes.has(other));
      expect([path, planned.has(path), isDirectory(after.nodes.get(path)), needed]).toEqual([
        ...[path, false, true, true],
      ]);
    }
  }
  const foreseen = withWrites(planned, new Map([...wrote].map((path) => [path, after.nodes.get(path)])));
  const listed = new Set<string>(receipt.kept.map(({ path }) => path));
  for (const { path } of difference(planned, target.nodes)) {
    const chosen = paths?.some((each) => isIn(path, each)) ?? true;
    if (wrote.has(path) || !chosen) continue;
    expect(listed.has(path), `${path} is listed as kept`).toBe(true);
    if (!must.has(path)) continue;
    const blocked = [after.nodes, foreseen].some((tree) => isBlocked(tree, path, must.get(path)));
    expect(blocked, `${path} has to be restored`).toBe(true);
  }
  expect(receipt.result).toBe(wrote.size === 0 ? "nothing" : "done");
}

/** What holds of every receipt: it names exactly what changed, the rest kept its identity, and nothing is lost (U4, U6). */
export async function checkReceipt(
  workspace: Pick<Workspace, "readFile">,
  receipt: RestoreReceipt,
  before: Disk,
  after: Disk,
): Promise<void> {
  const wrote = difference(before.nodes, after.nodes);
  const names = (list: readonly { readonly path: string }[]): readonly string[] => list.map(({ path }) => path).sort();
  expect([...receipt.written].sort(), "written").toEqual(names(wrote.filter((each) => each.after !== undefined)));
  expect([...receipt.deleted].sort(), "deleted").toEqual(names(wrote.filter((each) => each.after === undefined)));
  const touched = new Set(wrote.map(({ path }) => path));
  for (const [path, stamp] of before.stamps)
    if (!touched.has(path)) expect([path, after.stamps.get(path)]).toEqual([path, stamp]);
  const { safety } = receipt;
  if (safety === null) {
    expect(wrote, "nothing is written without a safety checkpoint").toEqual([]);
    return;
  }
  for (const { path, before: lost } of wrote) {
    if (lost?.kind !== "file") continue;
    const kept: Uint8Array[] = [];
    for await (const piece of workspace.readFile(safety, path)) kept.push(piece);
    expect([path, Buffer.concat(kept).toString("latin1")]).toEqual([path, lost.bytes]);
  }
}

/** `tree` with the modes of these directories as `like` has them: of one that had to be made, no rule says a mode. */
function alike(tree: Nodes, like: Nodes, of: (path: string) => boolean): Nodes {
  return new Map(
    [...tree].map(([path, node]): [string, Node] => {
      const other = like.get(path);
      const free = of(path) && node.kind === "directory" && other?.kind === "directory";
      return [path, free && !sameNode(node, other) ? { ...node, mode: other.mode } : node];
    }),
  );
}
