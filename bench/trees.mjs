/**
 * Generated trees, the same bytes for everyone who asks for the same one: text that compresses about as source code does, a
 * tenth of the files being copies of others, a few of them executable.
 */
import { createCipheriv } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const MiB = 2 ** 20;

/**
 * `heavy` says how many of the runs that are asked for are made of operations that write everything anew: one in so many.
 * `typicalBytes` is the middle of the sizes of text files; few large ones make the average 1.7 to 2.5 times that.
 */
export const trees = {
  small: { title: "1 000 files", files: 1_000, typicalBytes: 2_000, large: [], heavy: 1 },
  repo: {
    title: "20 000 files, like a source checkout with dependencies",
    files: 20_000,
    typicalBytes: 2_600,
    large: [],
    heavy: 2,
  },
  mono: { title: "100 000 files", files: 100_000, typicalBytes: 1_960, large: [], heavy: 3 },
  bigfile: {
    title: "50 files, one of 1 GiB and one of 256 MiB",
    files: 48,
    typicalBytes: 2_000,
    large: [1024 * MiB, 256 * MiB],
    heavy: 5,
  },
};

/** A small generator of its own (mulberry32): the same numbers on every machine. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const words =
  "const export function return import from await async string number value path entry tree session index if else for of new this throw error result options signal read write open close state null undefined true false".split(
    " ",
  );

const ownIdioms = 350;

/** Lines to write files from: most are of one file alone in real sources too, but imports and idioms come back. */
function createText(random) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const line = (end) => {
    const count = 3 + Math.floor(random() * 9);
    return `${" ".repeat(2 * Math.floor(random() * 4))}${Array.from({ length: count }, () => pick(words)).join(" ")}${end}\n`;
  };
  const idioms = Array.from({ length: 20_000 }, () => line(";"));
  return (bytes) => {
    const lines = [];
    const own = idioms.slice(Math.floor(random() * (idioms.length - ownIdioms))).slice(0, ownIdioms);
    for (let length = 0; length < bytes;) {
      const next = random() < 0.42 ? pick(own) : line(` ${Math.floor(random() * 1e6)};`);
      lines.push(next);
      length += next.length;
    }
    return lines.join("");
  };
}

/** Most files are small and a few are large, as in a checkout with dependencies. */
function sizeFrom(random, typicalBytes) {
  return Math.max(16, Math.min(512 * 1024, Math.round(typicalBytes * Math.exp(1.35 * gaussian(random)))));
}

function gaussian(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/**
 * Where files go: a fifth into sources, the rest into one folder of many packages, as package managers lay them out. Most
 * directories hold a few entries, one in a hundred holds dozens, and the folder of packages hundreds or thousands.
 */
function createLayout(random) {
  const skewed = (middle, spread, most) => Math.min(most, Math.ceil(middle * Math.exp(spread * gaussian(random))));
  let directory = "";
  let room = 0;
  let folders = 0;
  let home = "";
  let homes = 0;
  const nextHome = () => {
    const number = homes++;
    home =
      random() < 0.2
        ? path.join("src", `area-${number % 9}`, `feature-${number}`)
        : path.join("node_modules", `package-${number}`);
    folders = skewed(2, 0.9, 40);
    return home;
  };
  return () => {
    if (room-- <= 0) {
      directory =
        folders-- > 0
          ? path.join(home, ...["lib", `part-${folders}`].slice(0, 1 + (folders % 2)), `d${folders}`)
          : nextHome();
      room = skewed(5, 1.1, 700) - 1;
    }
    return directory;
  };
}

/** Makes the tree at `root`, which must not exist. `paths` are its text files, relative; `large` the large ones. */
export function generateTree(root, { files, typicalBytes, large }) {
  const random = randomFrom(files);
  const text = createText(random);
  const nextDirectory = createLayout(random);
  const made = { root, paths: [], large: [], files: files + large.length, bytes: 0, largest: Math.max(0, ...large) };
  let directory;
  let copied = "";
  for (let i = 0; i < files; i++) {
    const next = nextDirectory();
    if (next !== directory) fs.mkdirSync(path.join(root, next), { recursive: true });
    directory = next;
    const file = path.join(directory, `file-${i}.js`);
    const content = i % 10 === 9 ? copied : text(sizeFrom(random, typicalBytes));
    copied = content;
    fs.writeFileSync(path.join(root, file), content, { mode: i % 50 === 0 ? 0o755 : 0o644 });
    made.bytes += content.length;
    made.paths.push(file);
  }
  for (const [i, bytes] of large.entries()) {
    const file = `large-${i}.bin`;
    writeIncompressible(path.join(root, file), bytes, i);
    made.bytes += bytes;
    made.large.push(file);
  }
  return made;
}

/** A key stream: as fast to make as to write, and nothing compresses it. */
function writeIncompressible(file, bytes, seed) {
  const stream = createCipheriv("aes-128-ctr", Buffer.alloc(16, seed + 1), Buffer.alloc(16));
  const zeros = Buffer.alloc(4 * MiB);
  const fd = fs.openSync(file, "wx");
  for (let written = 0; written < bytes; written += zeros.length) {
    fs.writeSync(fd, stream.update(zeros.subarray(0, Math.min(zeros.length, bytes - written))));
  }
  fs.closeSync(fd);
}

export function describeTree(made, name) {
  return `### ${name}: ${trees[name].title}; ${(made.bytes / 1e6).toFixed(0)} MB\n`;
}
