/**
 * What is measured, in the order it is done on one tree. In each round every subject does the operation once, in another order
 * than the round before, so that what the machine does meanwhile meets all.
 *
 * Stores and directories that are written into are always fresh ones, and nothing is removed before the run is over: ext4
 * does not use the inodes of removed files again for minutes, and creating files beside them gets slow.
 *
 * A bench is what one tree is measured by: { tree, dir, kinds, rounds, heavyRounds, record, subjects }. `record` takes samples;
 * `subjects` holds, by key, what `captureFirst` opened.
 */
import fs from "node:fs";
import path from "node:path";
import { editTen, editTwelve, overwriteMebibyte } from "./edits.mjs";
import { drainWrites, untilStampsAreOld } from "./measure/calm.mjs";
import { diskUsage } from "./measure/disk-usage.mjs";

const editCommand = new URL("edit-command.mjs", import.meta.url).pathname;

/** Every round into a new store. The stores of the last one are used from there on. */
export async function captureFirst(bench) {
  await untilOld(bench, bench.tree.largest);
  for (let round = 0; round < bench.heavyRounds; round++) {
    for (const kind of inTurn(bench, "first", round)) {
      await bench.subjects.get(kind.key)?.subject.close?.();
      const store = path.join(bench.dir, `${kind.key}-${round}`);
      const subject = await kind.open({ tree: bench.tree.root, store });
      bench.subjects.set(kind.key, { subject, store });
      if (subject.first !== undefined) await measure(bench, "first", kind, round, () => subject.first());
    }
  }
  for (const { key } of bench.kinds) {
    const { subject } = bench.subjects.get(key);
    if (subject.first !== undefined)
      bench.record({ operation: "store", subject: key, round: 0, ...(await stored(bench, key)) });
    if (subject.peakMemory !== undefined) {
      bench.record({ operation: "peak", subject: key, round: 0, peakBytes: subject.peakMemory() });
    }
  }
}

export async function captureUnchanged(bench) {
  await catchUp(bench);
  for (let round = 0; round < bench.rounds; round++) await captureAll(bench, "unchanged", round);
}

export async function captureEdited(bench) {
  for (let round = 0; round < bench.rounds; round++) {
    const takeBack = editTwelve(bench.tree, `edited-${round}`);
    await untilOld(bench);
    await captureAll(bench, "edited", round);
    takeBack();
    await untilOld(bench);
    await catchUp(bench);
  }
}

/** From the end of a turn to its start. Each subject has a turn of its own, which its undo takes back. */
export async function undo(bench) {
  const description = path.join(bench.dir, "tree.json");
  fs.writeFileSync(description, JSON.stringify(bench.tree));
  for (let round = 0; round < bench.rounds; round++) {
    for (const kind of inTurn(bench, "undo", round)) {
      const { subject } = bench.subjects.get(kind.key);
      if (subject.undo === undefined) continue;
      await subject.capture();
      await subject.turn([process.execPath, editCommand, description, `${kind.key}-${round}`]);
      await untilOld(bench);
      await measure(bench, "undo", kind, round, () => subject.undo());
    }
  }
  await untilOld(bench);
  await catchUp(bench);
}

/** Back to the newest capture, over what somebody edited since. Each subject has the edits to itself. */
export async function restore(bench) {
  for (let round = 0; round < bench.rounds; round++) {
    for (const kind of inTurn(bench, "restore", round)) {
      const { subject } = bench.subjects.get(kind.key);
      if (subject.restore === undefined) continue;
      await subject.capture();
      const takeBack = editTwelve(bench.tree, `restore-${kind.key}-${round}`);
      await untilOld(bench);
      await measure(bench, "restore", kind, round, () => subject.restore());
      // Not everybody takes away what was added.
      takeBack();
      await untilOld(bench);
    }
  }
  await catchUp(bench);
}

export async function materialize(bench) {
  for (let round = 0; round < bench.heavyRounds; round++) {
    for (const kind of inTurn(bench, "materialize", round)) {
      const { subject } = bench.subjects.get(kind.key);
      if (subject.materialize === undefined) continue;
      const dest = path.join(bench.dir, `${kind.key}-${round}-out`);
      await measure(bench, "materialize", kind, round, () => subject.materialize(dest));
    }
  }
}

/** What many small captures add to a store. Who copies everything each time sits out. */
export async function grow(bench, captures = 50) {
  const kinds = bench.kinds.filter(({ only, isFullCopy }) => only === undefined && !isFullCopy);
  const before = new Map();
  for (const { key } of kinds) before.set(key, await stored(bench, key));
  for (let round = 0; round < captures; round++) {
    editTen(bench.tree, round);
    for (const { key } of kinds) await bench.subjects.get(key).subject.capture();
  }
  for (const { key } of kinds) {
    bench.record({ operation: "growth", subject: key, round: 0, ...added(before.get(key), await stored(bench, key)) });
  }
}

/** The last operation on its tree: who stores files whole takes part only once. */
export async function overwrite(bench) {
  for (let round = 0; round < Math.min(bench.rounds, 3); round++) {
    const kinds = inTurn(bench, "overwrite", round).filter(
      ({ isFullCopy, storesFilesWhole }) => !isFullCopy && !(storesFilesWhole && round > 0),
    );
    await untilOld(bench, bench.tree.largest);
    const before = new Map();
    for (const { key } of kinds) {
      before.set(key, await stored(bench, key));
      const { subject } = bench.subjects.get(key);
      // A process that let go of its store to have it measured would be measured cold.
      if (subject.rest !== undefined) await subject.capture();
    }
    overwriteMebibyte(bench.tree, round);
    await untilOld(bench);
    for (const kind of kinds) {
      const { subject } = bench.subjects.get(kind.key);
      const measured = await timed(() => subject.capture());
      const growth = added(before.get(kind.key), await stored(bench, kind.key));
      bench.record({ operation: "overwrite", subject: kind.key, round, ...measured, ...growth });
    }
  }
}

/** Those that take part in an operation, in another order each round: forwards, backwards, each time from another one. */
function inTurn({ kinds, heavyRounds }, operation, round) {
  const from = Math.floor(round / 2) % kinds.length;
  const turned = [...kinds.slice(from), ...kinds.slice(0, from)];
  if (round % 2 === 1) turned.reverse();
  return turned.filter(
    ({ only, isFullCopy }) =>
      (operation === "first" || only === undefined || only.includes(operation)) &&
      !(isFullCopy && round >= heavyRounds),
  );
}

async function captureAll(bench, operation, round) {
  for (const kind of inTurn(bench, operation, round)) {
    const { subject } = bench.subjects.get(kind.key);
    if (subject.capture !== undefined) await measure(bench, operation, kind, round, () => subject.capture());
  }
}

/** Lets everyone see the tree as it is, untimed. */
async function catchUp(bench) {
  for (const { key, only, isFullCopy } of bench.kinds) {
    if (only === undefined && !isFullCopy) await bench.subjects.get(key).subject.capture();
  }
}

async function measure(bench, operation, { key }, round, work) {
  bench.record({ operation, subject: key, round, ...(await timed(work)) });
}

async function timed(work) {
  drainWrites();
  return await work();
}

async function stored(bench, key) {
  const { subject, store } = bench.subjects.get(key);
  await subject.rest?.();
  return diskUsage(store, subject.apart);
}

function added(before, after) {
  return { bytes: after.bytes - before.bytes, diskBytes: after.diskBytes - before.diskBytes };
}

const untilOld = ({ tree }, largest) => untilStampsAreOld(path.join(tree.root, tree.paths[0]), largest);
