/**
 * Generated trees, the same for everyone who asks for the same size: text that compresses about as source code does, some
 * eight entries to a directory, a tenth of the files being copies of others.
 */
import fs from "node:fs";
import path from "node:path";

const words =
  "const export function return import from await async string number value path entry tree session index if else for of new this throw error result options signal read write open close state null undefined true false".split(
    " ",
  );

/** A small generator of its own (mulberry32): the same numbers on every machine. */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function text(random, bytes) {
  const lines = [];
  for (let length = 0; length < bytes;) {
    const count = 3 + Math.floor(random() * 9);
    const line = `${" ".repeat(2 * Math.floor(random() * 4))}${Array.from({ length: count }, () => words[Math.floor(random() * words.length)]).join(" ")} ${Math.floor(random() * 1e6)};\n`;
    lines.push(line);
    length += line.length;
  }
  return lines.join("");
}

/** Most files are small and a few are large, as in a checkout with dependencies; 6 KiB on average. */
function sizeFrom(random) {
  const gaussian = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.max(16, Math.min(512 * 1024, Math.round(Math.exp(7.6 + 1.35 * gaussian))));
}

/** Makes `count` files below `root`, which must not exist. Returns their paths, relative. */
export function generateTree(root, count) {
  const random = randomFrom(count);
  const paths = [];
  let directory = "";
  let copied = "";
  let bytes = 0;
  fs.mkdirSync(root, { recursive: true });
  for (let i = 0; i < count; i++) {
    if (i % 7 === 0) {
      const number = Math.floor(i / 7);
      directory = path.join(`p${number % 23}`, `m${Math.floor(number / 23) % 31}`, `d${number}`);
      fs.mkdirSync(path.join(root, directory), { recursive: true });
    }
    const file = path.join(directory, `file-${i}.js`);
    const content = i % 10 === 9 ? copied : text(random, sizeFrom(random));
    copied = content;
    fs.writeFileSync(path.join(root, file), content);
    bytes += content.length;
    paths.push(file);
  }
  return { paths, bytes };
}

/** What a turn of an agent is played by: ten files edited, one added, one deleted. Returns the way back. */
export function editTree(root, paths, salt) {
  const chosen = Array.from({ length: 11 }, (_, i) => paths[Math.floor(((i + 0.5) * paths.length) / 11)]);
  const before = chosen.map((file) => fs.readFileSync(path.join(root, file)));
  for (const file of chosen.slice(0, 10)) fs.appendFileSync(path.join(root, file), `// edited by ${salt}\n`);
  const deleted = path.join(root, chosen[10]);
  fs.rmSync(deleted);
  const added = path.join(root, `added-${salt}.txt`);
  fs.writeFileSync(added, `added by ${salt}\n`);
  return () => {
    chosen.forEach((file, i) => fs.writeFileSync(path.join(root, file), before[i]));
    fs.rmSync(added, { force: true });
  };
}

/** Entries, bytes as files say and bytes as the disk counts them. */
export function measureTree(root) {
  const sum = { files: 0, bytes: 0, diskBytes: 0 };
  for (const entry of fs.readdirSync(root, { recursive: true, withFileTypes: true })) {
    const stat = fs.lstatSync(path.join(entry.parentPath ?? entry.path, entry.name));
    sum.diskBytes += stat.blocks * 512;
    if (!stat.isFile()) continue;
    sum.files++;
    sum.bytes += stat.size;
  }
  return sum;
}
