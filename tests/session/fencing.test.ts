/** A session is fenced by two leases: who takes which first, what a refused one leaves, and what a lost one still may do. */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { sha256Hex } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { createSessionStore } from "../../src/session-store/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import type { Storage } from "../../src/storage/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import type { ToolDefinition } from "../../src/tool/index.js";
import { Playground } from "../playground.js";

const defineRig = rigDefiner(() => ({}));

interface Setup {
  readonly storage: Storage;
  readonly root: string;
  readonly steps?: readonly ScriptStep[];
  readonly tools?: readonly ToolDefinition[];
}
const rigOn = ({ storage, root, steps = [{ text: "Hello." }], tools = [] }: Setup) =>
  defineRig({
    storage,
    loops: [
      defineLoop({
        ...{ name: "agent", model: scriptedModel(steps) },
        tools: [fileTools(), bash({ needsApproval: false }), ...tools],
      }),
    ],
    exclusiveWorkspace: { root },
    snapshots: "manual",
  });

it("the lease of the root is asked for after the session's, by the root's digest, before anything is appended (R2)", async () => {
  await using place = new Playground();
  const storage = await place.storage();
  const done: string[] = [];
  const acquire = storage.leaser.acquire.bind(storage.leaser);
  storage.leaser.acquire = async (name, ...rest) => {
    const lease = await acquire(name, ...rest);
    done.push(name);
    return lease;
  };
  const append = storage.ledger.append.bind(storage.ledger);
  storage.ledger.append = async (name, ...rest) => {
    done.push("append");
    return append(name, ...rest);
  };
  await using session = await rigOn({ storage, root: place.root }).startSession();
  expect(done[0]).toContain(session.id);
  expect(done.slice(1, 3)).toEqual([`workspace-roots/${sha256Hex(place.root)}`, "append"]);
});

it("a root that is held, by whatever alias it is named, refuses a session with its holder; nothing is left of it (R1, R3)", async () => {
  await using place = new Playground();
  fs.symlinkSync(place.root, path.join(place.dir, "alias"));
  fs.mkdirSync(place.at("inside"));
  const storage = await place.storage();
  const first = await rigOn({ storage, root: place.root }).startSession();
  for (const [root, relation] of [
    [path.join(place.dir, "alias"), "same"],
    [`${place.root}//inside/..`, "same"],
    [place.at("inside"), "inside"],
  ] as const) {
    await expect(rigOn({ storage, root }).startSession()).rejects.toMatchObject({
      ...{ code: "workspace_root.busy", details: { relation, holder: { sessionId: first.id, pid: process.pid } } },
    });
  }
  expect((await createSessionStore(storage).list()).map(({ id }) => id)).toEqual([first.id]);
  // Of leases only the first session's two are held.
  const held = await storage.leaser.list("");
  expect(held).toHaveLength(2);
  await first.close();
  await (await rigOn({ storage, root: path.join(place.dir, "alias") }).startSession()).close();
});

it("tools of a session whose lease of the root is lost write nothing, and the next holder is not disturbed (C5, C7)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  let now = 1_000_000;
  const storage = createMemoryStorage({ leaseTtlMs: 10_000, clock: () => now });
  const successor = rigOn({
    ...{ storage, root: place.root },
    steps: [
      { calls: [{ tool: "Edit", input: { file_path: "f", old_string: "0", new_string: "theirs" } }] },
      { text: "Done." },
    ],
  });
  let second: Awaited<ReturnType<typeof successor.startSession>> | undefined;
  // It holds the path while the lease runs out and another session takes the root; the writers wait for it until then.
  const expire = defineTool({
    name: "Expire",
    description: "Lets the lease run out",
    requires: ["workspace"],
    inputSchema: jsonSchema({ type: "object" }),
    execute: async (_, { workspace }) => {
      using permit = await workspace.coordinator.acquire({ operation: "whole-mutation" });
      now += 10_001;
      second = await successor.startSession();
      permit.assertHeld();
      return "still mine";
    },
  });
  const first = await rigOn({
    ...{ storage, root: place.root, tools: [expire] },
    steps: [
      {
        calls: [
          { tool: "Expire", input: {} },
          { tool: "Edit", input: { file_path: "f", old_string: "0", new_string: "late" } },
          { tool: "Write", input: { file_path: "new", content: "late\n" } },
          { tool: "Bash", input: { command: "echo late > made" } },
        ],
      },
      { text: "Done." },
    ],
  }).startSession();
  expect(await (await first.submit("go")).done).toMatchObject({
    ...{ status: "interrupted", reason: "the session lost its lease" },
  });
  expect(place.tree()).toEqual({ f: "file 644 0" });
  await expect(first.workspace.checkpoint()).rejects.toMatchObject({ code: "workspace_root.lease_lost" });

  expect(await (await second?.submit("edit"))?.done).toMatchObject({ status: "done", text: "Done." });
  expect(place.tree()).toEqual({ f: "file 644 theirs" });
  await first.close().catch(() => undefined);
  await second?.close();
});
