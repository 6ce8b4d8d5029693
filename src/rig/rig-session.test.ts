/** A rig with everything real: the storage of three, the sessions, the loop; only the model plays from a script. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defineLoop, scriptedModel } from "../loop/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { rigDefiner } from "./define-rig.js";

const defineRig = rigDefiner(() => ({}));
let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
});
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

const storages = () => [createMemoryStorage(), createMemoryStorage(), createMemoryStorage()] as const;

describe("a rig whose sessions, trees and leases are kept apart", () => {
  const rigOn = ([sessionStore, store, leaser]: ReturnType<typeof storages>, system?: string, at = root) =>
    defineRig({
      sessionStore,
      loops: [defineLoop({ name: "operator", model: scriptedModel([{ text: "done" }]), system })],
      exclusiveWorkspace: { root: at, store, leaser },
      snapshots: "idle",
    });

  test("runs a session, and frees root and session when it is closed", async () => {
    const kept = storages();
    const session = await rigOn(kept).startSession();
    expect((await kept[2].leaser.list("")).map(({ subject }) => subject)).toEqual([fs.realpathSync.native(root)]);
    expect(await (await session.submit("begin")).done).toMatchObject({ status: "done", text: "done" });
    await session.close();
    for (const { leaser } of kept) expect(await leaser.list("")).toEqual([]);
  });

  test("R5: resumes it with what is notable, and not with what is breaking", async () => {
    const kept = storages();
    const session = await rigOn(kept).startSession();
    await session.close();

    const other = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
    try {
      await expect(rigOn(kept, undefined, other).resumeSession(session.id)).rejects.toThrow(
        expect.objectContaining({
          code: "configuration.drift",
          details: { changes: [expect.objectContaining({ field: "placement.root", severity: "breaking" })] },
        }),
      );
    } finally {
      fs.rmSync(other, { recursive: true, force: true });
    }
    const seen: unknown[] = [];
    const again = await rigOn(kept, "Be brief.").resumeSession(session.id, {
      onDrift: ({ changes }) => {
        seen.push(...changes.map(({ field, severity }) => [field, severity]));
        return "accept";
      },
    });
    await again.close();
    expect(seen).toEqual([["loops.operator.system", "notable"]]);
  });
});
