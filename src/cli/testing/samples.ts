/** The story of the command line's documentation as data: a calculator, two turns of 3f9a, a command of b71c. For tests. */
import type { CanonicalRoot, LeaseHolder, SessionId, SnapshotRef, TurnId, WorkspacePath } from "../../core/index.js";
import type { Change, Checkpoint, FileDiff, RestorePlan, TurnSummary } from "../../workspace/index.js";

export const home = "/home/ada";
export const root = "/home/ada/calc" as CanonicalRoot;
export const first = "3f9a0000-0000-4000-8000-000000000001" as SessionId;
export const second = "b71c0000-0000-4000-8000-000000000002" as SessionId;

/** Local time on the day of the story. */
export const at = (hours: number, minutes: number): Date => new Date(2026, 10, 30, hours, minutes);

export const path = (text: string): WorkspacePath => text as WorkspacePath;
export const refOf = (digit: string): SnapshotRef => `v1:sha256:${digit.repeat(64)}` as SnapshotRef;

export function checkpoint(number: number, more: Partial<Checkpoint> = {}): Checkpoint {
  return {
    ...{ number, order: number * 10, ref: refOf((number % 16).toString(16)), at: at(13, number), sessionId: first },
    ...{ trigger: "baseline", consistency: "quiescent", completeness: "complete", files: 214, omitted: {} },
    ...more,
  };
}

export function turn(number: number, more: Partial<TurnSummary> = {}): TurnSummary {
  return {
    ...{ number, turnId: `turn-${number}` as TurnId, sessionId: first, order: number * 10 + 5 },
    ...{ input: "make the tests pass", kind: "prompt", state: "done", changed: 2, protected: true },
    ...{ startedAt: at(13, 1), endedAt: at(13, 2) },
    ...more,
  };
}

export function plan(more: Partial<RestorePlan> = {}): RestorePlan {
  return {
    ...{ action: "undo", entry: "t1", title: "make the tests pass", entryAt: at(13, 2), entrySession: first },
    ...{ passedOver: [], writes: [path("src/parse.js"), path("src/round.js")], deletes: [] },
    ...{ kept: [], conflicts: [], omitted: [], foreign: [], unproven: [], window: [] },
    ...more,
  };
}

export const holder: LeaseHolder = {
  ...{ sessionId: second, command: 'exec "claude"', host: "laptop", pid: 4121, since: at(14, 2), epoch: 7 },
};

export const foreignChange = (name: string, kind: Change["kind"] = "edited"): Change => ({
  ...{ path: path(name), kind, entry: "file", captured: true, by: { kind: "foreign" } },
});

export const fileDiff = (name: string, added: number, removed: number, more: Partial<FileDiff> = {}): FileDiff => ({
  ...{ path: path(name), kind: "edited", entry: "file", added, removed, binary: false },
  text: () => Promise.resolve(""),
  ...more,
});
