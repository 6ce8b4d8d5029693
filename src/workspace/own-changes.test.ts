import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WorkspacePath } from "../core/index.js";
import { fileEntryOf } from "../workspace-store/index.js";
import type { TreeEntry } from "../workspace-store/index.js";
import { entryId, parseEntryId } from "./entry-id.js";
import { composeChanges, withoutUndone } from "./own-changes.js";
import type { OwnChange } from "./own-changes.js";

const file = (text: string | undefined): TreeEntry | undefined =>
  text === undefined ? undefined : fileEntryOf(Buffer.from(text), 0o644);
const path = "a" as WorkspacePath;

const recorded = (order: number, before: string | undefined, after: string | undefined): OwnChange => ({
  ...{ path, before: file(before), after: file(after), openOrder: order, closeOrder: order },
  ...{ kind: "paths", strength: "recorded", uncertain: false, finished: true },
});
const window = (open: number, close: number, before: string | undefined, after: string | undefined): OwnChange => ({
  ...{ path, before: file(before), after: file(after), openOrder: open, closeOrder: close },
  ...{ kind: "window", strength: "window", uncertain: true, finished: true },
});
const ends = (changes: readonly OwnChange[]) =>
  composeChanges(changes).map(({ before, after, strength }) => ({ before, after, strength }));

describe("what a turn changed (U1)", () => {
  it("one change that goes on from another is one change", () => {
    expect(ends([recorded(1, "v0", "v1"), recorded(2, "v1", "v2")])).toEqual([
      { before: file("v0"), after: file("v2"), strength: "recorded" },
    ]);
  });

  it("a path that is back where it began is no change", () => {
    expect(ends([recorded(1, undefined, "v1"), recorded(2, "v1", undefined)])).toEqual([]);
  });

  it("somebody else's write in between is where taking back stops", () => {
    expect(ends([recorded(1, "v0", "v1"), recorded(2, "theirs", "v2")])).toEqual([
      { before: file("theirs"), after: file("v2"), strength: "recorded" },
    ]);
  });

  it("a write that was prepared and not done gives way to the one that was done instead", () => {
    expect(ends([recorded(1, "v0", "v1"), recorded(2, "v0", "v2")])).toEqual([
      { before: file("v0"), after: file("v2"), strength: "recorded" },
    ]);
  });

  it("a window that holds a recorded write of the same says nothing of its own", () => {
    expect(ends([window(1, 5, "v0", "v1"), recorded(3, "v0", "v1")])).toEqual([
      { before: file("v0"), after: file("v1"), strength: "recorded" },
    ]);
  });

  it("a window that closed between the record of a write and the write says nothing against it", () => {
    expect(ends([recorded(3, "v0", "v1"), recorded(5, "v1", "v2"), window(2, 6, "v0", "v1")])).toEqual([
      { before: file("v0"), after: file("v2"), strength: "recorded" },
    ]);
  });

  it("U1: in a session's own root, where a window counts as recorded, a record still says more than a window", () => {
    const own = { ...window(2, 6, "v0", "v1"), strength: "recorded" as const, uncertain: false };
    expect(ends([recorded(3, "v0", "v1"), recorded(5, "v1", "v2"), own])).toEqual([
      { before: file("v0"), after: file("v2"), strength: "recorded" },
    ]);
  });

  it("what goes on from a window is as unproven as the window", () => {
    const [change] = composeChanges([window(1, 2, "v0", "v1"), recorded(3, "v1", "v2")]);
    expect(change).toMatchObject({ before: file("v0"), after: file("v2"), strength: "window", uncertain: true });
  });

  it("whatever the order of writes, what is taken back is never a byte of somebody else", () => {
    // A file, written by us (small letters, recorded) and by others (capitals) in turns.
    const ours = fc.constantFrom("x", "y", "z");
    const theirs = fc.constantFrom("X", "Y", "Z");
    fc.assert(
      fc.property(fc.array(fc.oneof(ours, theirs), { maxLength: 12 }), (writes) => {
        let now = "BEGIN";
        let lastTheirs = now;
        const changes: OwnChange[] = [];
        for (const [at, text] of writes.entries()) {
          if (text === text.toUpperCase()) lastTheirs = text;
          else changes.push(recorded(at, now, text));
          now = text;
        }
        const [net] = composeChanges(changes);
        if (net === undefined || entryId(net.after) !== entryId(file(now))) return;
        expect(entryId(net.before)).toBe(entryId(file(lastTheirs)));
      }),
    );
  });

  it("E3: of a write whose call never told its end the disk says whether it happened", async () => {
    const begun = { ...recorded(2, "v1", "v2"), finished: false };
    const all = [recorded(1, "v0", "v1"), begun];
    expect(await withoutUndone(all, async () => file("v1"))).toEqual([all[0]]);
    expect(await withoutUndone(all, async () => file("v2"))).toEqual(all);
    // Neither: somebody else's.
    expect(await withoutUndone(all, async () => file("other"))).toEqual([all[0]]);
  });
});

it("what stands at a path is spelled so that it reads back the same, and what is unknown reads as left out (E3)", () => {
  for (const entry of [undefined, file("x"), { kind: "symlink", target: "a:b/é" } as const]) {
    expect(parseEntryId(entryId(entry))).toEqual(entry);
  }
  expect(parseEntryId("directory:750")).toMatchObject({ kind: "directory", mode: 0o750 });
  expect(parseEntryId("device:8:1")).toMatchObject({ kind: "omitted" });
  expect(parseEntryId("file:9:1:zz")).toMatchObject({ kind: "omitted" });
});
