import { expect, it } from "vitest";
import { mintSessionId } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { createCommitSection } from "./commit-section.js";
import { commitLeaseName } from "./root-lease.js";

const root = "/project" as CanonicalRoot;

function sections() {
  const { leaser } = createMemoryStorage();
  const section = () => createCommitSection({ leaser, root, sessionId: mintSessionId() });
  return { leaser, a: section(), b: section() };
}

it("holds the root's commit lease while a step runs, and not before or after (C10)", async () => {
  const { leaser, a, b } = sections();
  const name = commitLeaseName(root);
  let steps = 0;
  const step = (): number => ++steps;
  const results = await Promise.all([a.commit(step), b.commit(step), a.commit(step)]);
  expect(results.sort()).toEqual([1, 2, 3]);
  expect(await leaser.inspect(name)).toBeUndefined();
  await expect(
    a.commit(() => {
      throw new Error("the step failed");
    }),
  ).rejects.toThrow("the step failed");
  expect(await leaser.inspect(name)).toBeUndefined();
  expect(await a.commit(step)).toBe(4);
});

it("waits for whoever holds the lease, and an aborted wait runs nothing and holds nothing", async () => {
  const { leaser, a, b } = sections();
  const name = commitLeaseName(root);
  const lease = await leaser.acquire(name, { sessionId: mintSessionId(), command: "a restore" });
  const abort = new AbortController();
  let ran = "";
  const given = a.commit(() => (ran += "a"), { signal: abort.signal });
  const waiting = b.commit(() => (ran += "b"));
  abort.abort(new Error("enough"));
  await expect(given).rejects.toThrow("enough");
  expect(ran).toBe("");
  await lease.release();
  await waiting;
  expect(ran).toBe("b");
  expect(await leaser.inspect(name)).toBeUndefined();
});
