/**
 * Sessions in processes of their own whose agents write the same files of a root they share, with Write from what they read
 * and with Edit: between them 1000 times, and no line is lost (C10, C024).
 */
import { expect, it } from "vitest";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

const files = Array.from({ length: 10 }, (_, i) => `log-${i}`);
const linesEach = 50;

// Every commit waits for the disk, which other work on a machine can slow down many times.
it(
  "no line is lost in 1000 rounds of two sessions that write and edit the same files",
  { timeout: 300_000 },
  async () => {
    await using place = new Playground("root", { quick: true });
    place.write(Object.fromEntries(files.map((file) => [file, "begin\nend\n"])));
    await place.storage();
    const writers = ["a", "b"].map((name) =>
      startProcess("tests/processes/shared-session.ts", [place.root, place.stateDir, name, String(linesEach)]),
    );
    for (const writer of writers) expect(await writer.line()).toBe("ready");
    let refused = 0;
    for (const file of files) {
      // Both are at the same file at the same time. They meet most in steps of one call, and get on fastest with many.
      for (const writer of writers) writer.say(`${file} ${files.indexOf(file) < 3 ? 1 : 8}`);
      for (const writer of writers) {
        const told = JSON.parse(await writer.line()) as { status: string; refused: number };
        expect(told.status).toBe("done");
        refused += told.refused;
      }
      const lines = place.read(file).split("\n");
      const wanted = ["a", "b"].flatMap((name) => Array.from({ length: linesEach }, (_, i) => `${name} ${i}`));
      // Each once, and all between the two lines that were there.
      expect(lines.slice(1, -2).sort()).toEqual(wanted.sort());
      expect([lines.at(0), ...lines.slice(-2)]).toEqual(["begin", "end", ""]);
    }
    for (const writer of writers) {
      writer.child.stdin?.end();
      expect((await writer.ended).code).toBe(0);
    }
    expect(refused).toBeGreaterThan(0);
    expect(Object.keys(place.tree())).toEqual(files);
  },
);
