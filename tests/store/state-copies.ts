/** State directories that are copied, worked on by somebody who dies, and looked at. */
import fs from "node:fs";
import path from "node:path";
import type { FileSystem } from "../../src/core/index.js";
import type { Playground } from "../playground.js";
import { countEffects } from "../failures/effects.js";

/** A copy of `from` beside it, in place of the last one of that name. */
export function copyState(place: Playground, from: string, name: string): string {
  const to = path.join(place.dir, name);
  fs.rmSync(to, { recursive: true, force: true });
  fs.cpSync(from, to, { recursive: true, preserveTimestamps: true });
  return to;
}

/** Bytes of the files in some of its places. */
export function bytesIn(state: string, places: readonly ("blobs" | "tmp" | "spool")[]): number {
  return places
    .flatMap((part) =>
      fs
        .readdirSync(path.join(state, part), { recursive: true, encoding: "utf8" })
        .map((name) => path.join(state, part, name)),
    )
    .map((file) => fs.statSync(file))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
}

/** The names of the effects on files of some work, in their order. */
export async function effectsOf(work: (fileSystem: FileSystem) => Promise<unknown>): Promise<readonly string[]> {
  const names: string[] = [];
  await work(countEffects(({ name }) => names.push(name)).fileSystem);
  return names;
}

/**
 * Every place of a row of effects that is unlike the one before it or the one after it, from 0: of a long run of the same effect
 * its ends, of everything else each.
 */
export const turningPoints = (names: readonly string[]): readonly number[] =>
  names.flatMap((name, i) => (names[i - 1] === name && names[i + 1] === name ? [] : [i]));
