/**
 * `npm run bench`: captures, undo and materializing beside git, `tar | gzip` and, where it is installed, restic.
 *
 *   --files N[,N…]   sizes of the generated trees; default 1000,20000
 *   --full           100000 files as well
 *   --rounds N       of everything that is cheap enough to be repeated; medians are shown; default 5
 *   --dir DIR        where trees and stores are made; a new directory in it; default .looprig-bench
 *
 * Everything is made in fresh directories and nothing is removed until the end: after a mass delete some file systems make
 * creating files slow for minutes. Subjects take turns within each round, so that what the machine does meanwhile meets all.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { git, isInstalled, looprigCommand, looprigInProcess, restic, tar } from "./subjects.mjs";
import { editTree, generateTree, measureTree } from "./tree.mjs";

const { values } = parseArgs({
  options: {
    files: { type: "string", default: "1000,20000" },
    full: { type: "boolean", default: false },
    rounds: { type: "string", default: "5" },
    dir: { type: "string", default: new URL("../.looprig-bench", import.meta.url).pathname },
  },
});
const sizes = [...values.files.split(",").map(Number), ...(values.full ? [100_000] : [])];
const rounds = Number(values.rounds);
if (![...sizes, rounds].every((number) => Number.isSafeInteger(number) && number > 0)) {
  throw new Error("--files wants whole numbers with commas between them, --rounds a whole number");
}

const operations = [
  ["first", "first capture"],
  ["unchanged", "capture, nothing changed"],
  ["edited", "capture, 10 edited, 1 added, 1 deleted"],
  ["undo", "undo of those 12"],
  ["materialize", "materialize into an empty directory"],
];

build();
fs.mkdirSync(values.dir, { recursive: true });
const place = fs.mkdtempSync(path.join(fs.realpathSync(values.dir), "run-"));
try {
  console.log(
    `node ${process.version}, ${os.cpus().length} CPUs, load ${os.loadavg()[0].toFixed(1)} at the start; ${rounds} rounds, medians\n`,
  );
  for (const files of sizes) await benchmark(files);
  console.log(notes());
} finally {
  fs.rmSync(place, { recursive: true, force: true });
  if (fs.readdirSync(values.dir).length === 0) fs.rmdirSync(values.dir);
}

async function benchmark(files) {
  const dir = path.join(place, String(files));
  const tree = path.join(dir, "tree");
  const { paths, bytes } = generateTree(tree, files);
  fs.writeFileSync(path.join(dir, "paths.json"), JSON.stringify(paths));
  const at = (name) => ({ tree, store: path.join(dir, name) });
  const subjects = [
    await looprigInProcess(at("looprig-library")),
    looprigCommand(at("looprig-command")),
    git(at("git")),
    tar(at("tar")),
    ...(isInstalled("restic") ? [restic(at("restic"))] : []),
  ];
  const times = new Map(subjects.map((subject) => [subject, Object.fromEntries(operations.map(([key]) => [key, []]))]));
  const rewriting = [];
  const time = async (subject, key, work) => {
    spawnSync("sync");
    const start = performance.now();
    await work();
    times.get(subject)[key].push(performance.now() - start);
  };

  for (const subject of subjects) await time(subject, "first", () => subject.first());
  for (const subject of subjects) subject.stored = measureTree(path.join(dir, storeOf(subject)));
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) await time(subject, "unchanged", () => subject.capture());
  }
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) {
      const salt = `${round}-${storeOf(subject)}`;
      const takeBack = editTree(tree, paths, salt);
      await time(subject, "edited", () => subject.capture());
      if (subject.undo !== undefined && subject.turn === undefined) await time(subject, "undo", () => subject.undo());
      takeBack();
      await subject.capture();
      if (subject.turn === undefined) continue;
      await subject.turn(`turn-${salt}`);
      await time(subject, "undo", () => subject.undo());
    }
  }
  const gitSubject = subjects.find((subject) => subject.undoByRewriting !== undefined);
  const takeBack = editTree(tree, paths, "rewriting");
  gitSubject.capture();
  const start = performance.now();
  gitSubject.undoByRewriting();
  rewriting.push(performance.now() - start);
  takeBack();
  for (const subject of subjects) {
    await subject.capture();
    await time(subject, "materialize", () => subject.materialize(path.join(dir, `${storeOf(subject)}-out`)));
  }
  for (const subject of subjects) await subject.close?.();
  report({ files, bytes, subjects, times, rewriting: median(rewriting) });
}

function storeOf({ name }) {
  return (
    { "looprig, in process": "looprig-library", "looprig, command": "looprig-command" }[name] ?? name.split(" ")[0]
  );
}

function report({ files, bytes, subjects, times, rewriting }) {
  const base = subjects.find(({ name }) => name.startsWith("git"));
  console.log(`### ${files} files, ${mebibytes(bytes)} MiB\n`);
  console.log(`| | ${subjects.map(({ name }) => name).join(" | ")} |`);
  console.log(`|---|${subjects.map(() => "---:").join("|")}|`);
  for (const [key, title] of operations) {
    const cells = subjects.map((subject) => {
      const own = median(times.get(subject)[key]);
      if (own === undefined) return "–";
      return subject === base
        ? milliseconds(own)
        : `${milliseconds(own)} (${ratio(own, median(times.get(base)[key]))})`;
    });
    console.log(`| ${title} | ${cells.join(" | ")} |`);
  }
  const sizes = subjects.map(({ stored }) => `${mebibytes(stored.bytes)} (${mebibytes(stored.diskBytes)} on disk)`);
  console.log(`| store after the first capture, MiB | ${sizes.join(" | ")} |`);
  console.log(
    `\nIn brackets: times what git takes. git's other undo, \`read-tree\` and \`checkout-index -a -f\`, which rewrites every file and leaves added ones: ${milliseconds(rewriting)}.\n`,
  );
}

function notes() {
  return [
    isInstalled("restic") ? "" : "restic is not installed here and was not measured.",
    "Not measured: a cold page cache, slow or network disks, files above 1 MiB, many writers at once, memory, and how long other",
    "work waits. looprig syncs its packs and its journal to disk before it answers; git does not sync loose objects by default.",
    "looprig's undo captures the tree before and after and journals both; git's here only writes files. tar's undo leaves added files.",
  ]
    .filter((line) => line !== "")
    .join("\n");
}

function build() {
  const built = spawnSync("npm", ["run", "--silent", "build"], {
    cwd: new URL("..", import.meta.url).pathname,
    stdio: "inherit",
  });
  if (built.status !== 0) throw new Error("the build failed, so there is nothing to measure");
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function mebibytes(bytes) {
  return (bytes / 2 ** 20).toFixed(1);
}

function milliseconds(ms) {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function ratio(own, other) {
  return `${(own / other).toFixed(2)}x`;
}
