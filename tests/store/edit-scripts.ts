/**
 * Edits a workspace meets, as plain values: each picks its path by a number among those that stand there, so that any script
 * runs on any tree. What an edit does not fit is passed over.
 */
import fs from "node:fs";
import fc from "fast-check";
import { nameFromBytes, toFsPath } from "../../src/core/index.js";
import { anyContent, anyEntry, anyName, bytesOf, writeEntry } from "./awkward-trees.js";
import type { AwkwardEntry, Content } from "./awkward-trees.js";

export type Edit =
  | { readonly edit: "overwrite" | "append"; readonly at: number; readonly content: Content }
  /** Changes bytes in the middle, leaves the size, and may put the modification time back. */
  | { readonly edit: "patch"; readonly at: number; readonly where: number; readonly backdate: boolean }
  | { readonly edit: "truncate"; readonly at: number; readonly where: number }
  | { readonly edit: "chmod"; readonly at: number; readonly mode: number }
  | { readonly edit: "touch" | "delete"; readonly at: number }
  | { readonly edit: "add" | "replace"; readonly at: number; readonly name: string; readonly entry: AwkwardEntry }
  | { readonly edit: "rename"; readonly at: number; readonly to: number; readonly name: string }
  | { readonly edit: "swap"; readonly at: number; readonly to: number }
  | { readonly edit: "link"; readonly at: number; readonly to: number; readonly name: string };

const at = fc.nat(1000);
const where = fc.nat(1000);

export const anyEdit: fc.Arbitrary<Edit> = fc.oneof(
  fc.record({ edit: fc.constantFrom("overwrite", "append"), at, content: anyContent }),
  fc.record({ edit: fc.constant("patch"), at, where, backdate: fc.boolean() }),
  fc.record({ edit: fc.constant("truncate"), at, where }),
  fc.record({ edit: fc.constant("chmod"), at, mode: fc.constantFrom(0o644, 0o755, 0o600, 0o000, 0o777) }),
  fc.record({ edit: fc.constantFrom("touch", "delete"), at }),
  fc.record({ edit: fc.constantFrom("add", "replace"), at, name: anyName, entry: anyEntry }),
  fc.record({ edit: fc.constant("rename"), at, to: at, name: anyName }),
  fc.record({ edit: fc.constant("swap"), at, to: at }),
  fc.record({ edit: fc.constant("link"), at, to: at, name: anyName }),
);

/** Does one edit below `root`. */
export function applyEdit(root: string, edit: Edit): void {
  const all = pathsBelow(root);
  const files = all.filter((each) => fs.lstatSync(toFsPath(each)).isFile());
  const directories = [root, ...all.filter((each) => fs.lstatSync(toFsPath(each)).isDirectory())];
  const pick = (from: readonly string[], number: number): string | undefined => from[number % Math.max(1, from.length)];

  switch (edit.edit) {
    case "overwrite":
    case "append": {
      const file = pick(files, edit.at);
      if (file === undefined) return;
      fs.writeFileSync(toFsPath(file), bytesOf(edit.content), { flag: edit.edit === "append" ? "a" : "w" });
      return;
    }
    case "patch": {
      const file = pick(files, edit.at);
      if (file === undefined) return;
      const { size, mtime, atime } = fs.lstatSync(toFsPath(file));
      if (size === 0) return;
      const fd = fs.openSync(toFsPath(file), "r+");
      const position = edit.where % size;
      const byte = Buffer.alloc(1);
      fs.readSync(fd, byte, 0, 1, position);
      byte[0] = (byte.readUInt8() + 1) & 0xff;
      fs.writeSync(fd, byte, 0, 1, position);
      if (edit.backdate) fs.futimesSync(fd, atime, mtime);
      fs.closeSync(fd);
      return;
    }
    case "truncate": {
      const file = pick(files, edit.at);
      if (file !== undefined) fs.truncateSync(toFsPath(file), edit.where % (fs.lstatSync(toFsPath(file)).size + 1));
      return;
    }
    case "chmod": {
      const each = pick([...files, ...directories.slice(1)], edit.at);
      if (each !== undefined) fs.chmodSync(toFsPath(each), edit.mode);
      return;
    }
    case "touch": {
      const each = pick([...files, ...directories], edit.at);
      if (each !== undefined) fs.utimesSync(toFsPath(each), 1_000_000, 2_000_000);
      return;
    }
    case "delete": {
      const each = pick(all, edit.at);
      if (each !== undefined) fs.rmSync(toFsPath(each), { recursive: true });
      return;
    }
    case "add": {
      const there = `${pick(directories, edit.at) ?? root}/${edit.name}`;
      if (isAbsent(there)) writeEntry(there, edit.entry);
      return;
    }
    case "replace": {
      const each = pick(all, edit.at);
      if (each === undefined) return;
      fs.rmSync(toFsPath(each), { recursive: true });
      writeEntry(each, edit.entry);
      return;
    }
    case "rename": {
      const from = pick(all, edit.at);
      const to = `${pick(directories, edit.to) ?? root}/${edit.name}`;
      if (from === undefined || `${to}/`.startsWith(`${from}/`) || !isAbsent(to)) return;
      fs.renameSync(toFsPath(from), toFsPath(to));
      return;
    }
    case "swap": {
      // Two files under each other's names: sizes, times and modes of the tree are a permutation of what they were.
      const [one, other] = [pick(files, edit.at), pick(files, edit.to)];
      if (one === undefined || other === undefined || one === other) return;
      const aside = `${root}/.aside`;
      fs.renameSync(toFsPath(one), aside);
      fs.renameSync(toFsPath(other), toFsPath(one));
      fs.renameSync(aside, toFsPath(other));
      return;
    }
    case "link": {
      const file = pick(files, edit.at);
      const to = `${pick(directories, edit.to) ?? root}/${edit.name}`;
      if (file !== undefined && isAbsent(to)) fs.linkSync(toFsPath(file), toFsPath(to));
      return;
    }
  }
}

function isAbsent(file: string): boolean {
  return fs.lstatSync(toFsPath(file), { throwIfNoEntry: false }) === undefined;
}

/** In byte order, so that a script means the same in every run. */
function pathsBelow(dir: string): string[] {
  return fs
    .readdirSync(toFsPath(dir), { encoding: "buffer" })
    .sort((a, b) => Buffer.compare(a, b))
    .flatMap((bytes) => {
      const each = `${dir}/${nameFromBytes(bytes)}`;
      return fs.lstatSync(toFsPath(each)).isDirectory() ? [each, ...pathsBelow(each)] : [each];
    });
}
