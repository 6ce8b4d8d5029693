/**
 * What has to be true after an operation was cut short, whenever that was: nothing holds the root, the tree is exactly the old
 * or exactly the new one, journal, catalog and store agree with it, nothing of ours is left, and things go on.
 */
import fs from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { createSessionStore } from "../../src/session-store/index.js";
import type { SessionStore } from "../../src/session-store/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import type { Storage } from "../../src/storage/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { touchOf } from "../../src/workspace/restore/testing/trees.js";
import { leftovers } from "./leftovers.js";
import { isShared, operations } from "./operations.js";
import type { Place } from "./operations.js";
import type { Scene } from "./scene.js";

export type Ending = "old" | "new";

/** How far a plan had come that waits to be settled. */
export async function phaseOf({ stateDir }: Place): Promise<string | undefined> {
  await using storage = await openLocalStorage({ dir: stateDir });
  const [pointer] = await storage.kv.list("plans/");
  return pointer && (JSON.parse(Buffer.from(pointer.value).toString("utf8")) as { phase: string }).phase;
}

/**
 * Opens the root as the next two programs do, looks at everything, and does the operation, or takes it back if it was done.
 * `buried`: whoever was cut short is gone from this machine, and so are the names of its temporary files.
 */
export async function expectSettled(scene: Scene, told: string, { buried = true } = {}): Promise<Ending> {
  {
    await using storage = await openLocalStorage({ dir: scene.stateDir });
    expect(await storage.leaser.list(""), told).toEqual([]);
    await using _next = await open(scene, storage);
  }
  const ending = endingOf(scene, told);
  const settled = touches(scene);
  {
    await using storage = await openLocalStorage({ dir: scene.stateDir });
    await using next = await open(scene, storage);
    expect(touches(scene), `${told}: settled twice`).toEqual(settled);
    expect(await next.unsettled(), told).toBeUndefined();
    expect(await storage.kv.list("plans/"), told).toEqual([]);
    expect((await next.history()).damaged, told).toEqual([]);
    expect(await restorations(createSessionStore(storage)), told).toBe(scene.restored + (ending === "new" ? 1 : 0));
    expect((await createWorkspaceStore(storage).verify()).damaged, told).toEqual([]);
    // The newest checkpoint is the tree that a restore left.
    if (ending === "new") expect((await next.checkpoint()).unchanged, told).toBe(true);

    const { run, back } = operations[scene.operation];
    const other = await (ending === "new" ? back(next) : run(next));
    expect(other.result, told).toMatch(/^(done|partly)$/);
    expect(scene.tree(), told).toEqual(ending === "new" ? scene.before : scene.after);
  }
  await using storage = await openLocalStorage({ dir: scene.stateDir });
  expect(await storage.leaser.list(""), told).toEqual([]);
  await expectCatalogTrue(createSessionStore(storage), told);
  if (buried) expect(leftovers(scene), told).toEqual(scene.leftovers);
  expect(fs.readdirSync(path.dirname(scene.root)).sort(), told).toEqual(["root", "state", "state.pristine"]);
  return ending;
}

export async function restorations(sessions: SessionStore): Promise<number> {
  const planIds: string[] = [];
  for (const { id } of await sessions.list()) {
    for await (const event of sessions.read(id)) if (event.type === "workspace-restored") planIds.push(event.planId);
  }
  expect(new Set(planIds).size).toBe(planIds.length);
  return planIds.length;
}

const touches = (scene: Scene): readonly string[] =>
  Object.keys(scene.tree()).map((name) => `${name} ${touchOf(scene.root, name)}`);

const open = ({ root, operation }: Scene, storage: Storage): Promise<Workspace> =>
  openWorkspace({ root, storage, baseline: false, shared: isShared(operation), command: "next" });

function endingOf(scene: Scene, told: string): Ending {
  const tree = scene.tree();
  const ending = [scene.before, scene.after].findIndex((known) => isDeepStrictEqual(known, tree));
  if (ending === -1) expect(tree, `${told}: neither the old tree nor the new one`).toEqual(scene.before);
  return ending === 0 ? "old" : "new";
}

/** The catalog is what the journals say, and no session counts as live. */
async function expectCatalogTrue(sessions: SessionStore, told: string): Promise<void> {
  const listed = await sessions.list();
  expect(
    listed.filter(({ state, history }) => state !== "closed" || history !== "whole"),
    told,
  ).toEqual([]);
  await sessions.rebuildCatalog();
  expect(await sessions.list(), told).toEqual(listed);
}
