/**
 * What happens between measurements and is never part of one.
 *
 * Stamps of files tick, and a file may change within a tick. Whoever keeps an index of stamps, git as well as looprig, trusts
 * an entry only when the file was left alone for a while before it was looked at, and reads it again otherwise. Edits of people
 * and agents are seldom that close to a capture; here they would be, so everything waits until the stamps are old enough.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";

const marginMs = 1200;
/** File systems that keep whole seconds only round by up to two. */
const wholeSecondMs = 2000;
/** looprig allows for large files that are written slowly. */
const slowestWriteBytesPerMs = (50 * 2 ** 20) / 1000;

/** Writes of the one before are not paid by the next. */
export function drainWrites() {
  spawnSync("sync");
}

/** Waits until a capture may trust the stamps of what was just written. `largest` is the size of the largest such file. */
export async function untilStampsAreOld(sample, largest = 0) {
  drainWrites();
  const { mtimeNs } = fs.lstatSync(sample, { bigint: true });
  const whole = mtimeNs % 1_000_000_000n === 0n ? wholeSecondMs : 0;
  await new Promise((resolve) => setTimeout(resolve, marginMs + whole + largest / slowestWriteBytesPerMs));
}
