import fc from "fast-check";
import { expect, it } from "vitest";
import { InvariantError } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { createObservations } from "./observations.js";
import type { Observation, PathObservation } from "./observations-contract.js";

const root = "/project" as CanonicalRoot;
const present = (contentHash: string, complete = true): Observation => ({ kind: "present", contentHash, complete });
const lastOf = (of: ReturnType<typeof createObservations>, path: string): Promise<Observation | undefined> =>
  of.withPath(path, async (observed) => observed.last);

it("begins with nothing, and gives back what was recorded last, under every spelling of the path (C8)", async () => {
  const observations = createObservations({ root });
  expect(await lastOf(observations, "a/b")).toBeUndefined();
  await observations.withPath("a/b", async (observed) => {
    observed.record({ kind: "absent" });
    observed.record(present("h"));
    expect(observed.last).toEqual(present("h"));
  });
  expect(await lastOf(observations, "/project/a/b")).toEqual(present("h"));
  expect(await lastOf(observations, "a")).toBeUndefined();
  expect(await lastOf(createObservations({ root }), "a/b")).toBeUndefined();
});

it("takes names that are one on the volume for one", async () => {
  const observations = createObservations({ root, fold: (name) => name.toLowerCase() });
  await observations.withPath("Read.Me", async (observed) => observed.record(present("h")));
  expect(await lastOf(observations, "README.me".replace("README", "READ"))).toEqual(present("h"));
});

it.each(["../x", "/elsewhere/x", "a/../b", "", "a//b", "a\0"])("never leaves the root: %j", async (path) => {
  await expect(lastOf(createObservations({ root }), path)).rejects.toMatchObject({ code: "coordinator.invalid_path" });
});

it("keeps content hashes when a shell command made time stamps worthless", async () => {
  const observations = createObservations({ root });
  await observations.withPath("f", async (observed) => observed.record(present("h")));
  observations.invalidateAll();
  expect(await lastOf(observations, "f")).toEqual(present("h"));
});

it("refuses a record from outside of its critical section", async () => {
  const observations = createObservations({ root });
  let kept: PathObservation | undefined;
  await observations.withPath("f", async (observed) => {
    kept = observed;
  });
  expect(() => kept?.record(present("late"))).toThrow(InvariantError);
  expect(await lastOf(observations, "f")).toBeUndefined();
});

it("lets the next one in when the work of one path fails", async () => {
  const observations = createObservations({ root });
  const failing = observations.withPath("f", () => Promise.reject(new Error("failed")));
  const next = lastOf(observations, "f");
  await expect(failing).rejects.toThrow("failed");
  expect(await next).toBeUndefined();
});

it("forgets the oldest beyond its bound", async () => {
  const observations = createObservations({ root, pathsMax: 2 });
  for (const path of ["a", "b", "a", "c"]) {
    await observations.withPath(path, async (observed) => observed.record(present(path)));
  }
  expect(await lastOf(observations, "b")).toBeUndefined();
  expect(await lastOf(observations, "a")).toEqual(present("a"));
  expect(await lastOf(observations, "c")).toEqual(present("c"));
});

it("runs one at a time per path, in the order asked, and other paths beside it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(fc.constantFrom("a", "b"), { maxLength: 8 }), async (s, paths) => {
      const observations = createObservations({ root });
      const inside = new Map<string, number>();
      const order: string[] = [];
      const all = paths.map((path, i) =>
        observations.withPath(path, async () => {
          expect(inside.get(path) ?? 0).toBe(0);
          inside.set(path, 1);
          order.push(`${path}${i}`);
          await s.schedule(Promise.resolve());
          inside.set(path, 0);
        }),
      );
      await s.waitFor(Promise.all(all));
      for (const path of ["a", "b"]) {
        const asked = paths.flatMap((each, i) => (each === path ? [`${path}${i}`] : []));
        expect(order.filter((each) => each.startsWith(path))).toEqual(asked);
      }
    }),
    { numRuns: 100 },
  );
});

it("forgets what was changed beneath the loop, and all that lies below it, and nothing else (C8)", async () => {
  const observations = createObservations({ root });
  const paths = ["a", "a/b/c", "ab", "d/e", "f"];
  for (const path of paths) await observations.withPath(path, async (observed) => observed.record(present(path)));
  observations.forget(["a", "/project/d/e", "never/seen"]);
  expect(await Promise.all(paths.map((path) => lastOf(observations, path)))).toEqual([
    ...[undefined, undefined, present("ab"), undefined, present("f")],
  ]);
  observations.forget([root]);
  expect(await lastOf(observations, "f")).toBeUndefined();
});
