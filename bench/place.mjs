/** Where a run takes place: a directory of its own. */
import fs from "node:fs";
import path from "node:path";

const repository = new URL("..", import.meta.url).pathname;
/** ext4 keeps the inodes of removed files from being used again for so long. */
const restMs = 300_000;

/**
 * Works in a new directory below `dir` and removes it at the end, never before: creating files beside freshly removed ones is
 * slow on ext4. For the same reason it is told when the run before ended only now.
 */
export async function withPlace(dir = path.join(repository, ".looprig-bench"), work) {
  fs.mkdirSync(dir, { recursive: true });
  const mark = path.join(dir, "last-run-removed");
  const sinceMs = Date.now() - (fs.statSync(mark, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (sinceMs < restMs) {
    console.error(
      `The files of the last run were removed ${Math.round(sinceMs / 1000)} s ago: on ext4 creating files may be slow for five minutes after that.`,
    );
  }
  const place = fs.mkdtempSync(path.join(fs.realpathSync(dir), "run-"));
  try {
    await work(place);
  } finally {
    fs.rmSync(place, { recursive: true, force: true });
    fs.writeFileSync(mark, "");
  }
}
