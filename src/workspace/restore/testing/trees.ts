/**
 * Small trees as plain values, for tests: written to disk, read back, compared, and described as the snapshot store would.
 * Paths are in the spelling of `names.ts`; file contents are latin1 text.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import {
  baseName,
  compareNames,
  isWithin,
  LooprigError,
  nameFromBytes,
  nameToBytes,
  parentOf,
  rootPath,
  toFsPath,
} from "../../../core/index.js";
import type { WorkspacePath } from "../../../core/index.js";
import { contentIdOf, encodePieces, objectIdOf, pieceBytes } from "../../../workspace-store/index.js";
import type {
  ContentId,
  PresentPaths,
  TreeChange,
  TreeEntry,
  TreeId,
  WorkspaceStore,
} from "../../../workspace-store/index.js";

export type Node =
  | { readonly kind: "file"; readonly text: string; readonly mode: number }
  | { readonly kind: "directory"; readonly mode: number }
  | { readonly kind: "symlink"; readonly target: string }
  | { readonly kind: "omitted"; readonly class: "special" | "excluded" | "vcs" };
export type Nodes = Readonly<Record<string, Node>>;

export const file = (text: string, mode = 0o644): Node => ({ kind: "file", text, mode });
export const directory = (mode = 0o755): Node => ({ kind: "directory", mode });
export const link = (target: string): Node => ({ kind: "symlink", target });
export const leftOut = (cls: "special" | "excluded" | "vcs" = "excluded"): Node => ({ kind: "omitted", class: cls });

export const at = (text: string): WorkspacePath => text as WorkspacePath;
export const sortedPaths = (nodes: Nodes): WorkspacePath[] => Object.keys(nodes).sort(compareNames).map(at);

/** Memory where there is some to write files to: tests that make thousands of trees would wear the disk for nothing. */
const base = fs.existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();

/** A temporary directory that the caller removes. */
export const temporaryDirectory = (): string => fs.realpathSync(fs.mkdtempSync(path.join(base, "looprig-")));

/** Also one whose directories may not be written by their owner. */
export function removeDirectory(dir: string): void {
  const loosen = (at: Buffer): void => {
    fs.chmodSync(at, 0o700);
    for (const entry of fs.readdirSync(at, { encoding: "buffer", withFileTypes: true })) {
      if (entry.isDirectory()) loosen(Buffer.concat([at, Buffer.from("/"), entry.name]));
    }
  };
  loosen(Buffer.from(dir));
  fs.rmSync(dir, { recursive: true, force: true });
}

const onDisk = (dir: string, name: string): Buffer => Buffer.concat([Buffer.from(`${dir}/`), nameToBytes(name)]);

export function writeTree(dir: string, nodes: Nodes): void {
  const paths = sortedPaths(nodes);
  for (const name of paths) {
    const node = nodes[name];
    if (node?.kind === "directory") fs.mkdirSync(onDisk(dir, name));
    else if (node?.kind === "file") {
      fs.writeFileSync(onDisk(dir, name), node.text, { encoding: "latin1", flag: "wx" });
      fs.chmodSync(onDisk(dir, name), node.mode);
    } else if (node?.kind === "symlink") fs.symlinkSync(toFsPath(node.target), onDisk(dir, name));
  }
  for (const name of paths.reverse()) {
    const node = nodes[name];
    if (node?.kind === "directory") fs.chmodSync(onDisk(dir, name), node.mode);
  }
}

export function readTree(dir: string): Record<string, Node> {
  const nodes: Record<string, Node> = {};
  const walk = (at: Buffer, prefix: string): void => {
    for (const bytes of fs.readdirSync(at, { encoding: "buffer" })) {
      const name = prefix + nameFromBytes(bytes);
      const full = Buffer.concat([at, Buffer.from("/"), bytes]);
      const stats = fs.lstatSync(full);
      const mode = stats.mode & 0o7777;
      if (stats.isDirectory()) {
        nodes[name] = { kind: "directory", mode };
        walk(full, `${name}/`);
      } else if (stats.isSymbolicLink()) {
        nodes[name] = { kind: "symlink", target: nameFromBytes(fs.readlinkSync(full, { encoding: "buffer" })) };
      } else nodes[name] = { kind: "file", text: fs.readFileSync(full, "latin1"), mode };
    }
  };
  walk(Buffer.from(dir), "");
  return nodes;
}

/** What of a file would show that it was touched. */
export function touchOf(dir: string, name: string): string {
  const { ino, mtimeNs, mode } = fs.lstatSync(onDisk(dir, name), { bigint: true });
  return `${ino} ${mtimeNs} ${mode}`;
}

export function contentId(text: string): ContentId {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length <= pieceBytes) return contentIdOf(bytes);
  const ids: string[] = [];
  for (let i = 0; i < bytes.length; i += pieceBytes) ids.push(objectIdOf(bytes.subarray(i, i + pieceBytes)));
  return objectIdOf(encodePieces(bytes.length, ids)) as ContentId;
}

export function entryOf(node: Node): TreeEntry;
export function entryOf(node: Node | undefined): TreeEntry | undefined;
export function entryOf(node: Node | undefined): TreeEntry | undefined {
  switch (node?.kind) {
    case "file":
      return { kind: "file", mode: node.mode & 0o777, size: node.text.length, id: contentId(node.text) };
    case "directory":
      return { kind: "directory", mode: node.mode & 0o777, id: "0".repeat(64) as TreeId };
    default:
      return node;
  }
}

/** What plans ask of a tree. */
export const treeOf = (nodes: Nodes): PresentPaths => ({
  lookup: async (path) => (path === rootPath ? entryOf(directory()) : entryOf(nodes[path])),
  names: async (path) =>
    sortedPaths(nodes)
      .filter((name) => parentOf(name) === path)
      .map((name) => baseName(name)),
});

/** What `WorkspaceStore.diff` says of two trees. */
export function changesOf(before: Nodes, after: Nodes): TreeChange[] {
  return [...new Set([...sortedPaths(before), ...sortedPaths(after)])].sort(compareNames).flatMap((path) => {
    const change = { path, before: entryOf(before[path]), after: entryOf(after[path]) };
    return JSON.stringify(change.before) === JSON.stringify(change.after) ? [] : [change];
  });
}

/** Holds the files of the trees it is given. */
export class MapStore implements Pick<WorkspaceStore, "read"> {
  readonly #bytes = new Map<string, Buffer>();

  constructor(...trees: readonly Nodes[]) {
    for (const tree of trees) this.add(tree);
  }

  add(tree: Nodes): void {
    for (const node of Object.values(tree)) {
      if (node.kind === "file") this.#bytes.set(contentId(node.text), Buffer.from(node.text, "latin1"));
    }
  }

  lose(text: string): void {
    this.#bytes.delete(contentId(text));
  }

  async *read(entry: Extract<TreeEntry, { kind: "file" }>): AsyncGenerator<Uint8Array> {
    const bytes = this.#bytes.get(entry.id);
    if (bytes === undefined) {
      throw new LooprigError("snapshot.object_missing", `Cannot read ${entry.id}: it is not in the store`, {
        object: entry.id,
      });
    }
    for (let i = 0; i < bytes.length; i += pieceBytes) yield bytes.subarray(i, i + pieceBytes);
  }
}

/** A copy of `nodes` without what `paths` name, and what lies below. */
export const without = (nodes: Nodes, ...paths: readonly string[]): Nodes =>
  Object.fromEntries(Object.entries(nodes).filter(([name]) => !paths.some((path) => isWithin(at(name), at(path)))));
