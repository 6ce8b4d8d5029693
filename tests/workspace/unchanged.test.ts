/** Whether a checkpoint says that nothing changed is asked of the newest one of the root, whoever took it and how. */
import { expect, it } from "vitest";
import { Playground } from "../playground.js";

it("a checkpoint is compared with the newest one, of this session or another", async () => {
  await using place = new Playground("unchanged", { quick: true });
  place.write({ f: "0" });
  const seen: boolean[] = [];
  for (const steps of [["0", "0"], ["0", "1", "1"], ["0"]]) {
    await using workspace = await place.open({ baseline: false });
    for (const content of steps) {
      place.write({ f: content });
      seen.push((await workspace.checkpoint()).unchanged);
    }
  }
  expect(seen).toEqual([false, true, true, false, true, false]);
});

it("a checkpoint after a command or a restore is compared with what those captured", async () => {
  await using place = new Playground("unchanged-after", { quick: true });
  place.write({ f: "0" });
  await using workspace = await place.open({ baseline: false });
  expect((await workspace.checkpoint()).unchanged).toBe(false);
  await workspace.exec(["sh", "-c", "printf 1 > f"], { stdio: "ignore" });
  expect((await workspace.checkpoint()).unchanged).toBe(true);
  await workspace.undo();
  expect((await workspace.checkpoint()).unchanged).toBe(true);
  place.write({ f: "1" });
  expect((await workspace.checkpoint()).unchanged).toBe(false);
});
