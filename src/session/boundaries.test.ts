/** The time limit of a boundary's capture, on a real root, with a timer that is moved by hand. Whole sessions are in `tests/session/`. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import { ManualTimer } from "../loop/testing/manual-timer.js";
import type { SessionEvent } from "../session-store/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { RootReader, canonicalPath, takeRoot } from "../workspace/index.js";
import { Boundaries } from "./boundaries.js";
import { ProgressFeed } from "./capture-progress.js";

const timeoutMs = 5_000;
let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  for (const name of ["a", "b", "c", "d"]) fs.writeFileSync(path.join(root, name), name);
});
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

/** A boundary whose capture takes 3 s for each file, and which says that it got on after each one, or does not. */
async function pass({ captured, gettingOn }: { readonly captured: boolean; readonly gettingOn: boolean }) {
  const timer = new ManualTimer();
  const progress = new ProgressFeed(() => 0);
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
    if (name !== "open" || !/\/[abcd]$/.test(String(args[0]))) return;
    timer.advance(3_000);
    if (gettingOn) progress.report({ filesSeen: 1, bytesRead: 1, bytesStored: 1 });
  });
  const storage = createMemoryStorage();
  const reader = new RootReader({ storage, root: canonicalPath(root), placement: "exclusive", fileSystem });
  const undo: (() => Promise<void> | void)[] = [];
  const owned = await takeRoot(reader, { command: "test" }, undo);
  const boundaries = new Boundaries({
    ...{ journal: owned.journal, timer, owned, progress, captured },
    policy: { trigger: "idle", priority: "best-effort", timeoutMs },
  });
  const { events, captured: capture } = await boundaries.pass("idle", [{ type: "session-idle" }]);
  await capture;
  const after: SessionEvent[] = [];
  for await (const event of reader.sessions.read(owned.sessionId, { from: (events[0]?.seq ?? 0) + 1 }))
    after.push(event);
  for (const step of undo.reverse()) await step();
  expect(timer.pending).toEqual([]);
  return after;
}

describe("K5: the time a capture may take", () => {
  it("is bounded as a whole, once the session has a checkpoint", async () => {
    expect(await pass({ captured: true, gettingOn: true })).toMatchObject([
      { type: "checkpoint-failed", trigger: "idle", code: "checkpoint.timed_out" },
    ]);
  });

  it("of a session's first one is bounded by the time without progress", async () => {
    expect(await pass({ captured: false, gettingOn: true })).toMatchObject([
      { type: "workspace-checkpointed", trigger: "idle", files: 4 },
    ]);
    expect(await pass({ captured: false, gettingOn: false })).toMatchObject([
      { type: "checkpoint-failed", code: "checkpoint.timed_out" },
    ]);
  });
});
