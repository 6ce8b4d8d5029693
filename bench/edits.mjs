/** What happens to a tree between captures. Every edit is told by a salt, so that no two write the same bytes. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

/** What a turn of an agent is played by: ten files edited, one added, one deleted, all over the tree. Returns the way back. */
export function editTwelve({ root, paths }, salt) {
  const chosen = Array.from({ length: 11 }, (_, i) => paths[Math.floor(((i + 0.5) * paths.length) / 11)]);
  const before = chosen.map((file) => fs.readFileSync(path.join(root, file)));
  for (const file of chosen.slice(0, 10)) appendLine(root, file, salt);
  fs.rmSync(path.join(root, chosen[10]));
  const added = path.join(root, `added-${salt}.txt`);
  fs.writeFileSync(added, `added by ${salt}\n`);
  return () => {
    chosen.forEach((file, i) => fs.writeFileSync(path.join(root, file), before[i]));
    fs.rmSync(added, { force: true });
  };
}

/** A line more in each of ten files, others in each round. */
export function editTen({ root, paths }, round) {
  for (let i = 0; i < 10; i++) {
    appendLine(root, paths[Math.floor((i * paths.length) / 10 + round * 37) % paths.length], `round-${round}`);
  }
}

/** 1 MiB in the middle of the large file, not where a piece of it begins: two pieces change. */
export function overwriteMebibyte({ root, large }, round) {
  const fd = fs.openSync(path.join(root, large[0]), "r+");
  const at = (100 + 200 * round) * 2 ** 20 + 12_345;
  fs.writeSync(fd, randomBytes(2 ** 20), 0, 2 ** 20, at);
  fs.closeSync(fd);
}

function appendLine(root, file, salt) {
  fs.appendFileSync(path.join(root, file), `// edited by ${salt}\n`);
}
