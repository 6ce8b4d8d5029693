/** Trees as plain values, written to disk and read back, for tests of whatever captures or restores. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { nameFromBytes, nameToBytes, toFsPath } from "../../core/index.js";

export type DiskEntry =
  | { readonly kind: "file"; readonly mode: number; readonly bytes: string | Buffer }
  | { readonly kind: "directory"; readonly mode: number; readonly entries: DiskTree }
  | { readonly kind: "symlink"; readonly target: string };
/** Entries by name, in the spelling of `core/names.ts`. */
export interface DiskTree {
  readonly [name: string]: DiskEntry;
}

export const file = (bytes: string | Buffer, mode = 0o644): DiskEntry => ({ kind: "file", mode, bytes });
export const directory = (entries: DiskTree, mode = 0o755): DiskEntry => ({ kind: "directory", mode, entries });
export const symlink = (target: string): DiskEntry => ({ kind: "symlink", target });

/** Makes `dir` hold exactly the tree, beside what is there. Modes are exact whatever the umask. */
export function writeTree(dir: string, tree: DiskTree): void {
  for (const [name, entry] of Object.entries(tree)) {
    const at = toFsPath(`${dir}/${name}`);
    switch (entry.kind) {
      case "file":
        fs.writeFileSync(at, entry.bytes);
        fs.chmodSync(at, entry.mode);
        break;
      case "directory":
        fs.mkdirSync(at);
        writeTree(`${dir}/${name}`, entry.entries);
        fs.chmodSync(at, entry.mode);
        break;
      case "symlink":
        fs.symlinkSync(nameToBytes(entry.target), at);
        break;
    }
  }
}

/** What stands in `dir`, bytes as latin1 text so that differences print. Special files are left out. */
export function readTree(dir: string): DiskTree {
  const tree: Record<string, DiskEntry> = {};
  for (const bytes of fs.readdirSync(toFsPath(dir), { encoding: "buffer" }).sort((a, b) => Buffer.compare(a, b))) {
    const name = nameFromBytes(bytes);
    const at = toFsPath(`${dir}/${name}`);
    const stats = fs.lstatSync(at);
    const mode = stats.mode & 0o7777;
    if (stats.isDirectory()) tree[name] = { kind: "directory", mode, entries: readTree(`${dir}/${name}`) };
    else if (stats.isFile()) tree[name] = { kind: "file", mode, bytes: fs.readFileSync(at).toString("latin1") };
    else if (stats.isSymbolicLink()) {
      tree[name] = { kind: "symlink", target: nameFromBytes(fs.readlinkSync(at, { encoding: "buffer" })) };
    }
  }
  return tree;
}

/** A fresh directory, removed by `dispose` whatever the modes in it. */
export function temporaryDirectory(): { readonly path: string; dispose(): void } {
  const made = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
  return {
    path: made,
    dispose: () => {
      fs.rmSync(made, { recursive: true, force: true });
    },
  };
}
