import { expect, test } from "vitest";
import { Output } from "./output.js";
import { Progress } from "./progress.js";

function terminal(isTerminal = true): { readonly output: Output; readonly written: string[] } {
  const written: string[] = [];
  const output = new Output(isTerminal, () => ({
    write: (chunk, done) => {
      written.push(String(chunk));
      done();
      return true;
    },
    on: () => undefined,
  }));
  return { output, written };
}
const seen = { filesSeen: 12_480, bytesRead: 3 * 2 ** 20, bytesStored: 0 };

test("progress is shown from one second on, over itself, and is gone afterwards", async () => {
  const { output, written } = terminal();
  let ms = 0;
  const progress = new Progress(output, "looprig: baseline", false, () => ms);
  progress.report(seen);
  expect(written).toEqual([]);
  ms = 1_000;
  progress.report(seen);
  expect(written).toEqual(["\r\u001b[Klooprig: baseline: 12 480 files, 3.0 MiB read"]);
  await progress.done();
  expect(written.at(-1)).toBe("\r\u001b[K");
  progress.report(seen);
  await progress.done();
  expect(written).toHaveLength(2);
});

test("once the tree was walked, progress is told of what there is", () => {
  const { output, written } = terminal();
  let ms = 0;
  const progress = new Progress(output, "looprig: baseline", false, () => ms);
  ms = 1_000;
  progress.report({ filesSeen: 50, bytesRead: 0, estimate: { files: 20_000, bytes: 127 * 2 ** 20 } });
  progress.report({ ...seen, estimate: { files: 20_000, bytes: 127 * 2 ** 20 } });
  expect(written).toEqual([
    "\r\u001b[Klooprig: baseline: 50 of 20 000 files",
    "\r\u001b[Klooprig: baseline: 12 480 of 20 000 files, 3.0 MiB of 127 MiB read",
  ]);
});

test("a large tree that is captured for the first time is told of once, before it is read", () => {
  const large = { filesSeen: 320_000, bytesRead: 0, estimate: { files: 320_000, bytes: 12 * 2 ** 30 } };
  const told = (first: boolean): readonly string[] => {
    const { output, written } = terminal();
    const progress = new Progress(output, "looprig: baseline", false, () => 0, { first });
    progress.report(seen);
    progress.report(large);
    progress.report(large);
    return written;
  };
  expect(told(true)).toEqual([
    "looprig: baseline: 320 000 files, 12.0 GiB; the first capture reads all of it. --exclude GLOB leaves out what need not be kept.\n",
  ]);
  expect(told(false)).toEqual([]);
});

test.each([
  ["through a pipe", false, false],
  ["when quiet", true, true],
])("nothing is shown %s", async (_, isTerminal, quiet) => {
  const { output, written } = terminal(isTerminal);
  let ms = 0;
  const progress = new Progress(output, "x", quiet, () => ms);
  ms = 5_000;
  progress.report(seen);
  await progress.done();
  expect(written).toEqual([]);
});
