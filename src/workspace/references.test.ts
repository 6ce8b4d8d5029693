import { describe, expect, it } from "vitest";
import { isLooprigError } from "../core/index.js";
import type { CanonicalRoot, SessionId, SnapshotRef, TurnId } from "../core/index.js";
import type { Checkpoint, RootHistory, TurnSummary } from "./contracts.js";
import { resolveRef, resolveTurn, splitRefPath } from "./references.js";

const ref = (digits: string): SnapshotRef => `v1:sha256:${digits.padEnd(64, "0")}` as SnapshotRef;
const sessionId = "11111111-2222-4333-8444-555555555555" as SessionId;

const checkpoint = (number: number, digits: string, more: Partial<Checkpoint> = {}): Checkpoint => ({
  ...{ number, order: number, ref: ref(digits), at: new Date(number), sessionId, trigger: "manual" },
  ...{ consistency: "quiescent", completeness: "complete", files: 1, omitted: {} },
  ...more,
});

const turn: TurnSummary = {
  ...{ number: 2, turnId: "turn" as TurnId, sessionId, order: 9, input: "x", kind: "command", startedAt: new Date(0) },
  ...{ state: "done", from: ref("aaaaaaaa1"), to: ref("bbbbbbbb"), changed: 1, protected: true },
};

const history: RootHistory = {
  root: "/r" as CanonicalRoot,
  known: true,
  checkpoints: [
    checkpoint(1, "aaaaaaaa1", { label: "release" }),
    checkpoint(2, "aaaaaaaa2", { label: "release" }),
    checkpoint(5, "aaaaaaaa1", { turn: 2 }),
    checkpoint(6, "bbbbbbbb", { turn: 2 }),
  ],
  turns: [turn],
  entries: [],
  sessions: [],
  damaged: [],
};

describe("resolveRef (G7)", () => {
  it.each([
    ["c2", ref("aaaaaaaa2"), 2],
    ["last", ref("bbbbbbbb"), 6],
    ["t2", ref("bbbbbbbb"), 6],
    ["t2^", ref("aaaaaaaa1"), 5],
    ["release", ref("aaaaaaaa2"), 2],
    ["bbbbbbbb", ref("bbbbbbbb"), 6],
    [ref("aaaaaaaa1"), ref("aaaaaaaa1"), 5],
  ])("reads %s as the newest snapshot it names", (given, expected, number) => {
    const resolved = resolveRef(history, given);
    expect(resolved.ref).toBe(expected);
    expect(resolved.checkpoint?.number).toBe(number);
  });

  it("reads now as the live tree", () => {
    expect(resolveRef(history, "now")).toEqual({ given: "now", ref: "now" });
  });

  it("names the candidates of an ambiguous prefix (G7)", () => {
    expect(() => resolveRef(history, "aaaaaaaa")).toThrow(
      expect.toSatisfy(
        (error) => isLooprigError(error, "ref.ambiguous") && error.details.candidates.length === 2,
      ) as Error,
    );
  });

  it.each(["c3", "c0", "t9", "t2^^", "nothing", "aaaaaaa", "C2", ""])("says that %j is unknown", (given) => {
    expect(() => resolveRef(history, given)).toThrow(
      expect.toSatisfy((error) => isLooprigError(error, "ref.unknown")) as Error,
    );
  });

  it("says how far the names go, or how the first checkpoint comes about", () => {
    const told = (of: RootHistory): unknown => {
      try {
        return resolveRef(of, "c9");
      } catch (error) {
        return isLooprigError(error, "ref.unknown") ? [error.message, error.hint] : error;
      }
    };
    expect(told(history)).toEqual(['Cannot find "c9" in /r: the newest checkpoint here is c6', undefined]);
    expect(told({ ...history, checkpoints: [], turns: [] })).toEqual([
      ...['Cannot find "c9" in /r: there is no checkpoint here yet', "looprig exec -- <command> takes the first"],
    ]);
  });

  it("refuses a full ref of another version", () => {
    expect(() => resolveRef(history, "v1:sha256:xyz")).toThrow(/v1:sha256/);
  });
});

describe("resolveTurn", () => {
  it("finds a turn by its number and nothing else", () => {
    expect(resolveTurn(history, "t2")).toBe(turn);
    expect(() => resolveTurn(history, "t2^")).toThrow(/t2\^/);
    expect(() => resolveTurn(history, "2")).toThrow(/"2"/);
  });
});

describe("splitRefPath", () => {
  it.each([
    ["c1", "c1", undefined],
    ["c1:a/b", "c1", "a/b"],
    ["c1:a:b", "c1", "a:b"],
    [ref("ab"), ref("ab"), undefined],
    [`${ref("ab")}:x\ny`, ref("ab"), "x\ny"],
  ])("splits %j", (text, refText, path) => {
    expect(splitRefPath(text)).toEqual({ ref: refText, path });
  });
});
