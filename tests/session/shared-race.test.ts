/** Sessions in processes of their own that write one file of a root they share, each from what it read (C10, C024). */
import { expect, it } from "vitest";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

const lines = 500;

it("no line is lost in 1000 writes of two processes", async () => {
  await using place = new Playground();
  place.write({ log: "begin\n" });
  await place.storage();
  const writers = ["a", "b"].map((name) =>
    startProcess("tests/processes/tool-writer.ts", [place.root, place.stateDir, name, String(lines)]),
  );
  for (const writer of writers) expect(await writer.line()).toBe("ready");
  const refused = await Promise.all(
    writers.map(async (writer) => (JSON.parse(await writer.line()) as { refused: number }).refused),
  );
  for (const writer of writers) expect((await writer.ended).code).toBe(0);
  // They did meet.
  expect(refused.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0);
  const wanted = ["a", "b"].flatMap((name) => Array.from({ length: lines }, (_, i) => `${name} ${i}`));
  expect(place.read("log").split("\n").sort()).toEqual(["", "begin", ...wanted].sort());
  expect(Object.keys(place.tree())).toEqual(["log"]);
});
