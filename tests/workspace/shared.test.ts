/** Shared placement: two sessions and a person in one root. Nothing is undone there on a guess. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { Playground } from "../playground.js";

const quiet = { stdio: "ignore" } as const;

it("two sessions hold a shared root at once, and their captures are fuzzy (P1)", async () => {
  await using place = new Playground();
  await using a = await place.open({ shared: true });
  await using b = await place.open({ shared: true });
  expect((await a.checkpoint()).consistency).toBe("fuzzy");
  expect((await b.checkpoint()).number).toBe(2);
});

it("window changes are taken back only with consent, and never what another window changed meanwhile (U1)", async () => {
  await using place = new Playground();
  place.write({ mine: "0", both: "0", theirs: "0" });
  await using a = await place.open({ shared: true });
  await using b = await place.open({ shared: true });
  // b's window lies inside a's: a waits for b's file.
  const running = a.exec(
    place.sh("printf a > mine; printf a > both; : > started; while [ ! -e done ]; do :; done; rm started done"),
    quiet,
  );
  await expect.poll(() => fs.existsSync(place.at("started")), { timeout: 30_000 }).toBe(true);
  await b.exec(place.sh("printf b > both; printf b > theirs"), quiet);
  fs.writeFileSync(place.at("done"), "");
  await running;

  // Everything b changed, a may have changed: nothing of it is b's for certain.
  const theirs = await b.undo({ turn: "t2", onConflict: "skip", includeWindow: true });
  expect(theirs.result).toBe("conflict");
  expect(theirs.conflicts.map(({ path }) => path)).toEqual(["both", "theirs"]);

  const plan = await a.plan({ kind: "undo", turn: "t1" });
  expect([plan.writes, plan.window]).toEqual([["mine"], ["mine"]]);
  await expect(a.undo({ turn: "t1", onConflict: "skip" })).rejects.toMatchObject({ code: "undo.needs_consent" });

  const undone = await a.undo({ turn: "t1", onConflict: "skip", includeWindow: true });
  expect(undone.result).toBe("partly");
  expect(undone.written).toEqual(["mine"]);
  expect(undone.conflicts.map(({ path, by }) => [path, by.kind])).toEqual([
    ["both", "other-session"],
    ["theirs", "other-session"],
  ]);
  expect([place.read("mine"), place.read("both"), place.read("theirs")]).toEqual(["0", "b", "b"]);
});

it("windows that follow each other are no conflict", async () => {
  await using place = new Playground();
  place.write({ f: "0", g: "0" });
  await using a = await place.open({ shared: true });
  await using b = await place.open({ shared: true });
  await a.exec(place.sh("printf a > f"), quiet);
  await b.exec(place.sh("printf b > g"), quiet);
  expect((await a.undo({ turn: "t1", includeWindow: true })).result).toBe("done");
  expect([place.read("f"), place.read("g")]).toEqual(["0", "b"]);
});
