/**
 * Random trees and random sequences of whatever happens to a root, beside a model of the contract: edits by file tools, by
 * tools and programs in windows, by real shells, by strangers, by a second session; checkpoints, undo, redo, restore, copies;
 * restarts, clean ones and those of a process that is gone. After every command the tree is what the rules allow and every
 * receipt is true.
 *
 * About 1 500 commands here, in 108 sequences; `LOOPRIG_SOAK=1` has forty times as many.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { commands, commandsWithShells, edit } from "./commands.js";
import type { Command } from "./commands.js";
import { Run } from "./run.js";
import type { RealOptions } from "./real.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const times = soak ? 40 : 1;
const timeout = soak ? 3_600_000 : 60_000;
const firstTree = fc.array(edit, { maxLength: 6 });

/** Returns how often what was done, and how it ended. */
async function runAll(
  sequences: fc.Arbitrary<readonly Command[]>,
  options: RealOptions,
  numRuns: number,
): Promise<ReadonlyMap<string, number>> {
  const told = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(firstTree, sequences, async (first, list) => {
      await using run = await Run.start(options, first, told);
      for (const command of list) await run.do(command);
    }),
    // A failure that is still being made smaller when the time is up is reported as small as it is.
    { numRuns, plugins: [fc.interruptAfterTimeLimit(timeout - 10_000, { failOnInterrupt: true })] },
  );
  return told;
}

test(
  "with one session in the root nothing is lost and every receipt is true (U1, U3, U4, U7, U8)",
  async () => {
    const told = await runAll(commands(28), { shared: false, local: false }, 54 * times);
    expect([...told.keys()]).toEqual(expect.arrayContaining(["undo done", "restore done"]));
  },
  timeout,
);

test(
  "with two sessions in the root nothing of theirs or of a stranger is lost (U1, U3, U7)",
  async () => {
    const told = await runAll(commands(28), { shared: true, local: false }, 50 * times);
    expect([...told.keys()]).toEqual(expect.arrayContaining(["undo done", "undo asks", "restore done"]));
  },
  timeout,
);

test(
  "the same with real shells, on local storage",
  async () => {
    const told = await runAll(commandsWithShells(12), { shared: false, local: true }, 4 * times);
    expect(told.get("shell")).toBeGreaterThan(0);
  },
  timeout,
);
