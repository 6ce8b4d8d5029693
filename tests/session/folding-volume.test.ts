/** A session whose root lies on a volume that folds case, played by the file system seam: what was seen is one file (C8, R1). */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem, FsPath } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import { Playground } from "../playground.js";

/** Looks names in `dir` up without their case, as such a volume does. */
function folding(dir: string): FileSystem {
  const stored = <P extends FsPath>(at: P): P | string => {
    if (typeof at !== "string" || path.dirname(at) !== dir) return at;
    const wanted = path.basename(at).toLowerCase();
    const found = fs.readdirSync(dir).find((name) => name.toLowerCase() === wanted);
    return found === undefined ? at : path.join(dir, found);
  };
  return {
    ...nodeFileSystem,
    lstat: (at) => nodeFileSystem.lstat(stored(at)),
    stat: (at) => nodeFileSystem.stat(stored(at)),
  };
}

it("a loop that saw a file by one spelling has seen it by every other, and its permits are for one path", async () => {
  await using place = new Playground();
  place.write({ "Read.me": "1" });
  const seen: unknown[] = [];
  const look = defineTool({
    name: "Look",
    description: "Sees a file by one spelling and asks by another",
    requires: ["workspace"],
    inputSchema: jsonSchema({ type: "object" }),
    execute: async (_, { workspace: { observations, coordinator } }) => {
      await observations?.withPath("Read.me", async (observed) =>
        observed.record({ kind: "present", contentHash: "h", complete: true }),
      );
      await observations?.withPath("READ.ME", async ({ last }) => void seen.push(last));
      using _permit = await coordinator.acquire({ operation: "path-mutation", paths: ["Read.me"] });
      await coordinator
        .acquire({ operation: "path-mutation", paths: ["READ.ME"] })
        .catch((error: unknown) => seen.push(error));
      return "looked";
    },
  });
  const rig = rigDefiner(() => ({ fileSystem: folding(place.root) }))({
    storage: await place.storage(),
    loops: [
      defineLoop({
        name: "agent",
        model: scriptedModel([{ calls: [{ tool: "Look", input: {} }] }, { text: "Done." }]),
        tools: [look],
      }),
    ],
    exclusiveWorkspace: { root: place.root },
    snapshots: "manual",
  });
  await using session = await rig.startSession();
  expect(await (await session.submit("look")).done).toMatchObject({ status: "done" });
  expect(seen).toMatchObject([{ kind: "present", contentHash: "h" }, { code: "coordinator.reentry" }]);
});
