/**
 * The contract of undo, redo, restore and attribution (U1, U3, U7, U8) as a small model in memory: what happened, as records
 * of who changed what, and what a verb may and must do about it. Written from the rules, not from the code.
 *
 * Order is a clock of its own that ticks with every record. What a rule leaves open is left open here: `mustWrite` and
 * `mayWrite` differ where only an old record explains the bytes that are there.
 */
import { ancestors, difference, hasBelow, isDirectory, isIn, sameNode } from "./nodes.js";
import type { Node, Nodes } from "./nodes.js";

/** One change of one path that a record of ours tells of. */
export interface Record {
  readonly path: string;
  readonly before: Node | undefined;
  readonly after: Node | undefined;
  readonly session: string;
  readonly turn: number;
  /** "recorded": a file tool's own write. "window": what differs around something of ours that could write (U1). */
  readonly strength: "recorded" | "window";
  readonly open: number;
  readonly close: number;
}

type State = "applied" | "undone" | "partly";

/** Of the undo list (U3). */
export interface Entry {
  readonly name: string;
  readonly order: number;
  /** Of a turn; absent for a restore, which is undone by its two trees. */
  readonly turn?: number;
  readonly session: string;
  readonly changes: readonly Change[];
  state: State;
  /** What undoing it took back so far: this, and no more, is what redo puts back. */
  readonly taken: Set<string>;
}

/** What an entry did to a path, all in all. */
export type Change = Pick<Record, "path" | "before" | "after" | "strength" | "open" | "close">;

/** What a verb is to do by the rules. */
export interface Expected {
  /** What has to be at these paths afterwards; undefined: nothing. Directories that are needed above them come besides. */
  readonly writes: ReadonlyMap<string, Node | undefined>;
  readonly conflicts: ReadonlySet<string>;
  /** Directories that stay because something of others is in them. */
  readonly kept: ReadonlySet<string>;
}

export interface Choice {
  readonly paths: readonly string[] | undefined;
}

const covers = ({ paths }: Choice, path: string): boolean => paths?.some((chosen) => isIn(path, chosen)) ?? true;

export class Contract {
  readonly shared: boolean;
  readonly records: Record[] = [];
  readonly entries: Entry[] = [];
  #redo: Entry[] = [];
  #clock = 0;
  #turns = 0;

  constructor(shared: boolean) {
    this.shared = shared;
  }

  tick(): number {
    return ++this.#clock;
  }

  nextTurn(): number {
    return ++this.#turns;
  }

  /** A turn ended. Its records, of which each says one path, are put together path by path (U3). */
  endTurn(turn: number, session: string, records: readonly Record[]): void {
    this.records.push(...records);
    this.#redo = [];
    this.entries.push({
      ...{ name: `t${turn}`, turn, session, order: this.tick(), state: "applied", taken: new Set() },
      changes: composed(records),
    });
  }

  /** A restore that wrote something is an entry of its own, undone towards the tree it found. */
  restored(name: string, session: string, before: Nodes, after: Nodes): void {
    const order = this.tick();
    this.#redo = [];
    const changes = difference(before, after).map((each) => ({
      ...{ ...each, strength: "window" as const, open: order, close: order },
    }));
    this.entries.push({ name, session, order, changes, state: "applied", taken: new Set() });
  }

  undone(entry: Entry, wrote: Iterable<string>, partly: boolean): void {
    this.tick();
    for (const path of wrote) entry.taken.add(path);
    entry.state = partly ? "partly" : "undone";
    this.#redo = [...this.#redo.filter((each) => each !== entry), entry];
  }

  redone(entry: Entry): void {
    this.tick();
    entry.taken.clear();
    entry.state = "applied";
    this.#redo = this.#redo.filter((each) => each !== entry);
  }

  // ── what the verbs are to do ──────────────────────────────────────────────────────────────────────────────────────

  /** The entry that undo takes: the newest with something left to take back, or the one that is named. */
  undoable(live: Nodes, choice: Choice, turn?: string): { readonly entry: Entry; readonly plan: Expected } | undefined {
    if (turn !== undefined) {
      const entry = this.entries.find(({ name }) => name === turn);
      if (entry === undefined || entry.state === "undone") return undefined;
      return { entry, plan: this.reversal(entry, live, "undo", choice) };
    }
    for (const entry of [...this.entries].sort((a, b) => b.order - a.order)) {
      if (entry.state === "undone") continue;
      const plan = this.reversal(entry, live, "undo", choice);
      const stuck = entry.state === "partly" && plan.writes.size === 0;
      if (!stuck && plan.writes.size + plan.conflicts.size + plan.kept.size > 0) return { entry, plan };
    }
    return undefined;
  }

  redoable(): Entry | undefined {
    return this.#redo.at(-1);
  }

  /** U3: present equals what the entry left → what was before; equal to that already → nothing; otherwise a conflict. */
  reversal(entry: Entry, live: Nodes, direction: "undo" | "redo", choice: Choice): Expected {
    const wanted = new Map<string, Node | undefined>();
    const conflicts = new Set<string>();
    for (const change of entry.changes) {
      const { path, before, after } = change;
      if (!covers(choice, path) || (direction === "redo" && !entry.taken.has(path))) continue;
      const [left, target] = direction === "undo" ? [after, before] : [before, after];
      const now = live.get(path);
      if (sameNode(now, target)) continue;
      if (!sameNode(now, left) || this.#overlapped(entry, change)) conflicts.add(path);
      else wanted.set(path, target);
    }
    return possible(live, wanted, conflicts);
  }

  /** U1: a change in a window is nobody's for certain where another session changed the path in the same span. */
  #overlapped({ session, turn }: Entry, change: Change): boolean {
    if (turn === undefined || change.strength === "recorded") return false;
    return this.records.some(
      (other) =>
        other.path === change.path &&
        other.session !== session &&
        other.open <= change.close &&
        change.open <= other.close,
    );
  }

  /** U1: what of the paths needs consent in a root that others write to as well. */
  needsConsent(entry: Entry, paths: Iterable<string>): boolean {
    if (!this.shared) return false;
    const change = new Map(entry.changes.map((each) => [each.path, each]));
    return [...paths].some((path) => change.get(path)?.strength !== "recorded");
  }

  /** Records that left exactly this at the path. */
  explanations(path: string, node: Node | undefined): readonly Record[] {
    return this.records.filter((record) => record.path === path && sameNode(record.after, node));
  }

  /**
   * U7, path by path: absent → written; explained by a record since the tree was taken → written; explained by none →
   * kept; explained by an older one only → either.
   */
  towards(
    target: Nodes,
    live: Nodes,
    options: Choice & { readonly exact: boolean; readonly since: number },
  ): { readonly must: ReadonlyMap<string, Node | undefined>; readonly may: ReadonlyMap<string, Node | undefined> } {
    const must = new Map<string, Node | undefined>();
    const may = new Map<string, Node | undefined>();
    for (const { path, before: now, after } of difference(live, target)) {
      if (!covers(options, path)) continue;
      const explained = now === undefined ? [] : this.explanations(path, now);
      if (now !== undefined && !options.exact && explained.length === 0) continue;
      may.set(path, after);
      if (now === undefined || options.exact || explained.some(({ close }) => close > options.since))
        must.set(path, after);
    }
    return { must, may };
  }
}

/**
 * A window that says what a recorded write says, says nothing of its own: the write may have become visible after its
 * record, in the window.
 */
const restates = (window: Change, record: Change): boolean =>
  window.strength === "window" &&
  record.strength === "recorded" &&
  record.close <= window.close &&
  sameNode(window.after, record.after) &&
  (window.open <= record.close || sameNode(window.before, record.before));

/** A change that begins where the last one of its path ended goes on with it; another one starts anew. */
function composed(records: readonly Record[]): readonly Change[] {
  const net = new Map<string, Change>();
  for (const record of [...records].sort((a, b) => a.close - b.close)) {
    if (records.some((other) => other !== record && other.path === record.path && restates(record, other))) continue;
    const last = net.get(record.path);
    const goesOn = last !== undefined && sameNode(last.after, record.before);
    const strength = goesOn && last.strength === "window" ? "window" : record.strength;
    net.set(record.path, goesOn ? { ...record, before: last.before, open: last.open, strength } : record);
  }
  return [...net.values()].filter(({ before, after }) => !sameNode(before, after));
}

/** The tree with these paths as they are wanted, and the directories that are needed for them. */
export function withWrites(live: Nodes, writes: ReadonlyMap<string, Node | undefined>): Nodes {
  const next = new Map(live);
  for (const [path, node] of writes) {
    if (node === undefined) next.delete(path);
    else next.set(path, node);
  }
  for (const [path, node] of writes) {
    if (node === undefined) continue;
    for (const above of ancestors(path)) {
      // What is absent, or goes, is made; what stays stands in the way.
      if (next.get(above) === undefined) next.set(above, { kind: "directory", mode: 0o755 });
    }
  }
  return next;
}

/** Why a path cannot be as it is wanted in this tree: something is in its place, or in it. */
export function isBlocked(tree: Nodes, path: string, target: Node | undefined): boolean {
  if (!isDirectory(target) && hasBelow(tree, path)) return true;
  return target !== undefined && ancestors(path).some((above) => tree.has(above) && !isDirectory(tree.get(above)));
}

/** Takes out what cannot be done: a directory in which something stays, a path whose parent is no directory by then. */
function possible(live: Nodes, wanted: ReadonlyMap<string, Node | undefined>, conflicts: Set<string>): Expected {
  const writes = new Map(wanted);
  const kept = new Set<string>();
  for (;;) {
    const tree = withWrites(live, writes);
    const blocked = [...writes].filter(([path, target]) => {
      // What goes makes room for a directory that is needed in its place.
      const makesRoom = target === undefined && !isDirectory(live.get(path));
      return !makesRoom && isBlocked(tree, path, target);
    });
    if (blocked.length === 0) return { writes, conflicts, kept };
    for (const [path, target] of blocked) {
      writes.delete(path);
      if (target === undefined) kept.add(path);
      else conflicts.add(path);
    }
  }
}
