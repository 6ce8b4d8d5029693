/** The policy over made-up histories: whatever happened, and whatever is asked, what must stay stays. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallId, SessionId, SnapshotRef, TurnId } from "../../core/index.js";
import type { UndoEntryName } from "../../session-store/index.js";
import type { Checkpoint, TurnSummary, UndoEntry } from "../contracts.js";
import type { RecordedWrite, Window } from "../history.js";
import { decideDrop, treesOf, treesOfTurn } from "./keep-policy.js";
import type { DropBasis, KeepPolicy } from "./keep-policy.js";

const hourMs = 3_600_000;
const start = Date.UTC(2026, 0, 1);
const sessions = ["a", "b", "c"] as unknown as readonly SessionId[];
const refOf = (n: number): SnapshotRef => `v1:sha256:${String(n).padStart(64, "0")}` as SnapshotRef;

/** What a session does to the root; `tree` is what stands there afterwards. */
type Deed =
  | { readonly kind: "checkpoint"; readonly session: number; readonly tree: number; readonly label: boolean }
  | { readonly kind: "turn"; readonly session: number; readonly trees: readonly number[]; readonly ends: boolean }
  | { readonly kind: "restore"; readonly session: number; readonly tree: number }
  | { readonly kind: "undo" }
  | { readonly kind: "redo" };

/** Few trees, so that the same one comes again and again. */
const tree = fc.nat(9);
const session = fc.nat(2);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ kind: fc.constant("checkpoint" as const), session, tree, label: fc.boolean() }),
  fc.record({
    ...{ kind: fc.constant("turn" as const), session },
    ...{ trees: fc.array(tree, { minLength: 1, maxLength: 4 }), ends: fc.boolean() },
  }),
  fc.record({ kind: fc.constant("restore" as const), session, tree }),
  fc.record({ kind: fc.constant("undo" as const) }),
  fc.record({ kind: fc.constant("redo" as const) }),
);
const deeds = fc.array(deed, { maxLength: 30 });
const policy: fc.Arbitrary<KeepPolicy> = fc.record(
  { last: fc.integer({ min: 1, max: 6 }), withinMs: fc.nat(40 * hourMs), dropLabelled: fc.boolean() },
  { requiredKeys: [] },
);

/** The history those deeds leave, one hour apart, as the fold of the journals would tell it. */
function historyOf(done: readonly Deed[]): DropBasis & { readonly now: Date } {
  const checkpoints: Checkpoint[] = [];
  const turns: TurnSummary[] = [];
  const entries: (UndoEntry & { state: UndoEntry["state"] })[] = [];
  const windows: Window[] = [];
  const writes: RecordedWrite[] = [];
  let redoable: UndoEntryName[] = [];
  let order = 0;
  let at = refOf(0);
  const take = (sessionId: SessionId, ref: SnapshotRef, more: Partial<Checkpoint> = {}): Checkpoint => {
    at = ref;
    const number = checkpoints.length + 1;
    const taken: Checkpoint = {
      ...{ ref, number, order: ++order, at: new Date(start + order * hourMs), sessionId, trigger: "manual" },
      ...{ consistency: "quiescent", completeness: "complete", files: 1, omitted: {}, ...more },
    };
    checkpoints.push(taken);
    return taken;
  };
  const entry = (name: UndoEntryName, kind: UndoEntry["kind"], sessionId: SessionId, from: SnapshotRef): void => {
    redoable = [];
    entries.push({ name, kind, sessionId, order, at: new Date(order), title: "", state: "applied", from, to: at });
  };
  for (const each of done) {
    if (each.kind === "undo" || each.kind === "redo") {
      const found =
        each.kind === "undo"
          ? entries.findLast(({ state }) => state === "applied")
          : entries.find(({ name }) => name === redoable.at(-1));
      if (found === undefined) continue;
      found.state = each.kind === "undo" ? "undone" : "applied";
      if (each.kind === "undo") redoable.push(found.name);
      else redoable.pop();
      take(found.sessionId, each.kind === "undo" ? found.from : found.to);
      continue;
    }
    const sessionId = sessions[each.session] as SessionId;
    if (each.kind === "checkpoint") take(sessionId, refOf(each.tree), each.label ? { label: "kept" } : {});
    else if (each.kind === "restore") {
      const from = at;
      entry(`c${take(sessionId, refOf(each.tree)).number}`, "restore", sessionId, from);
    } else {
      const from = at;
      const [number, turnId] = [turns.length + 1, `turn ${turns.length}` as TurnId];
      const callId = `call ${number}` as CallId;
      for (const next of each.trees) {
        const window = { callId, from: at, to: refOf(next), opened: true, openOrder: order, closeOrder: order + 1 };
        take(sessionId, refOf(next), { turn: number });
        windows.push({
          ...{ kind: "window", ...window, sessionId, turnId, turn: number, uncertain: false, strength: "window" },
        });
      }
      writes.push({
        ...{ kind: "paths", callId, order, changes: [], kept: refOf(99), sessionId, turnId, turn: number },
        finished: true,
      });
      turns.push({
        ...{ number, turnId, sessionId, order, input: "x", kind: "prompt", startedAt: new Date(order), from, to: at },
        ...{ state: each.ends ? "done" : "unsettled", changed: 1, protected: true },
        ...(each.ends ? { endedAt: new Date(order) } : {}),
      });
      if (each.ends) entry(`t${number}`, "turn", sessionId, from);
    }
  }
  const now = new Date(start + (order + 1) * hourMs);
  return { checkpoints, turns, entries, redoable, windows, openWindows: [], writes, now };
}

const refsOf = (checkpoints: readonly Checkpoint[]): Set<SnapshotRef> => new Set(checkpoints.map(({ ref }) => ref));
const numbers = (checkpoints: readonly Checkpoint[]): number[] => checkpoints.map(({ number }) => number);

function isNamed({ checkpoints, now }: ReturnType<typeof historyOf>, wish: KeepPolicy, each: Checkpoint): boolean {
  const later = checkpoints.filter(({ sessionId, order }) => sessionId === each.sessionId && order > each.order).length;
  const young = wish.withinMs !== undefined && now.getTime() - each.at.getTime() <= wish.withinMs;
  const none = wish.last === undefined && wish.withinMs === undefined;
  return none || later < (wish.last ?? 0) || young || (each.label !== undefined && wish.dropLabelled !== true);
}

describe("a keep policy", () => {
  it("drops nothing that it names, nothing that is held, and never the newest tree", () => {
    fc.assert(
      fc.property(deeds, policy, fc.array(tree, { maxLength: 2 }), (done, wish, heldTrees) => {
        const basis = historyOf(done);
        const held = heldTrees.map(refOf);
        const { checkpoints: dropped } = decideDrop(basis, wish, { held, now: basis.now });
        const gone = refsOf(dropped);
        for (const each of basis.checkpoints) if (isNamed(basis, wish, each)) expect(gone).not.toContain(each.ref);
        for (const ref of held) expect(gone).not.toContain(ref);
        const newest = basis.checkpoints.at(-1);
        if (newest !== undefined) expect(gone).not.toContain(newest.ref);
        // Of one tree all go or none.
        const left = basis.checkpoints.filter((each) => !dropped.includes(each));
        for (const { ref } of left) expect(gone).not.toContain(ref);
      }),
    );
  });

  it("leaves all that the next undo, every redo and every turn that is not settled need", () => {
    fc.assert(
      fc.property(deeds, policy, (done, wish) => {
        const basis = historyOf(done);
        const { checkpoints, entries, calls } = decideDrop(basis, wish, { held: [], now: basis.now });
        const gone = refsOf(checkpoints);
        const next = basis.entries.findLast(({ state }) => state !== "undone");
        for (const entry of basis.entries) {
          const whole = treesOf(entry, basis).every((ref) => !gone.has(ref));
          if (entry === next || basis.redoable.includes(entry.name)) expect(whole).toBe(true);
          // And what is said to be gone is exactly what cannot be done any more.
          expect(entries.includes(entry.name)).toBe(!whole);
        }
        for (const turn of basis.turns) {
          if (turn.endedAt === undefined) {
            for (const ref of treesOfTurn(turn, basis)) expect(gone).not.toContain(ref);
          }
        }
        for (const { callId } of calls) expect(entries).toContain(`t${callId.slice("call ".length)}`);
      }),
    );
  });

  it("asked again it finds nothing more, and asked for more it never drops more", () => {
    fc.assert(
      fc.property(deeds, policy, (done, wish) => {
        const basis = historyOf(done);
        const others = { held: [], now: basis.now };
        const dropped = decideDrop(basis, wish, others).checkpoints;
        const at = new Date(0);
        const again = basis.checkpoints.map((each) => (dropped.includes(each) ? { ...each, dropped: at } : each));
        expect(numbers(decideDrop({ ...basis, checkpoints: again }, wish, others).checkpoints)).toEqual([]);
        if (wish.last === undefined) return;
        const more = numbers(decideDrop(basis, { ...wish, last: wish.last + 1 }, others).checkpoints);
        expect(numbers(dropped)).toEqual(expect.arrayContaining(more));
      }),
    );
  });

  it("drops what a person expects: the old checkpoints of each session, and with them the undo of their turns", () => {
    const basis = historyOf([
      { kind: "checkpoint", session: 0, tree: 1, label: true },
      { kind: "turn", session: 0, trees: [2], ends: true },
      { kind: "turn", session: 0, trees: [3], ends: true },
      { kind: "turn", session: 0, trees: [4], ends: true },
      { kind: "turn", session: 0, trees: [5], ends: true },
      { kind: "checkpoint", session: 1, tree: 6, label: false },
    ]);
    const others = { held: [], now: basis.now };
    expect(decideDrop(basis, {}, others).checkpoints).toEqual([]);
    const two = decideDrop(basis, { last: 2 }, others);
    // c1 has a label; c3 is where t3 began, which can still be undone.
    expect({ checkpoints: numbers(two.checkpoints), entries: two.entries }).toEqual({
      ...{ checkpoints: [2], entries: ["t1", "t2"] },
    });
    const all = decideDrop(basis, { last: 2, dropLabelled: true }, others);
    expect(numbers(all.checkpoints)).toEqual([1, 2]);
    const young = decideDrop(basis, { withinMs: 3 * hourMs }, others);
    expect(numbers(young.checkpoints)).toEqual([2]);
  });
});
