/** tar with a quick compressor: everything anew each time, and no byte stored once for two files. */
import fs from "node:fs";
import path from "node:path";
import { run, timed, versionOf } from "../measure/commands.mjs";

const kind = (key, title, compressor, decompress) => ({
  key,
  title,
  version: () => (versionOf("tar") === undefined ? undefined : versionOf(compressor.split(" ")[0])),
  isFullCopy: true,
  open: ({ tree, store }) => {
    fs.mkdirSync(store);
    let count = 0;
    const archive = (number) => path.join(store, `${number}.tar`);
    const pack = () =>
      timed(() => run("sh", ["-c", `tar -C "$0" -cf - . | ${compressor} > "$1"`, tree, archive(count++)]));
    return {
      first: pack,
      capture: pack,
      materialize: (dest) =>
        timed(() => {
          fs.mkdirSync(dest);
          run("sh", ["-c", `${decompress} < "$0" | tar -C "$1" -xf -`, archive(count - 1), dest]);
        }),
    };
  },
});

export const tarGzip = kind("tar-gzip", "tar, `gzip -1`", "gzip -1", "gzip -d");
export const tarZstd = kind("tar-zstd", "tar, `zstd -1`", "zstd -1 -q", "zstd -d -q");
