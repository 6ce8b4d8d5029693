/**
 * Trees as the model has them, the edits that anybody can make to them, and the same on disk by plain `node:fs`. Shares
 * nothing with the code under test: paths are turned into bytes here by the documented form (a lone U+DC80 to U+DCFF is one
 * byte that is not UTF-8).
 */
import fs from "node:fs";

export type Node =
  | { readonly kind: "file"; readonly bytes: string; readonly mode: number }
  | { readonly kind: "directory"; readonly mode: number }
  | { readonly kind: "link"; readonly target: string };

/** What stands where, below a root that is not in it itself. */
export type Nodes = ReadonlyMap<string, Node>;

/** What one hand does to a tree. A `put` makes room: it removes what is in its place, or in the place of a parent. */
export type Edit =
  | { readonly kind: "put"; readonly path: string; readonly node: Node }
  | { readonly kind: "delete"; readonly path: string }
  | { readonly kind: "chmod"; readonly path: string; readonly mode: number }
  | { readonly kind: "rename"; readonly path: string; readonly to: string };

export const sameNode = (a: Node | undefined, b: Node | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(shown(a)) === JSON.stringify(shown(b)));

const shown = (node: Node): readonly unknown[] =>
  node.kind === "file"
    ? ["file", node.mode, node.bytes]
    : node.kind === "directory"
      ? ["directory", node.mode]
      : ["link", node.target];

export const isDirectory = (node: Node | undefined): boolean => node?.kind === "directory";

/** Nearest first. */
export function ancestors(path: string): readonly string[] {
  const found: string[] = [];
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) found.push(path.slice(0, at));
  return found;
}

export const isBelow = (path: string, directory: string): boolean => path.startsWith(`${directory}/`);
export const isIn = (path: string, chosen: string): boolean => path === chosen || isBelow(path, chosen);

export const hasBelow = (nodes: Nodes, directory: string): boolean =>
  [...nodes.keys()].some((path) => isBelow(path, directory));

/** Paths that differ, with what stands there on both sides. */
export function difference(
  from: Nodes,
  to: Nodes,
): readonly { readonly path: string; readonly before: Node | undefined; readonly after: Node | undefined }[] {
  return [...new Set([...from.keys(), ...to.keys()])]
    .map((path) => ({ path, before: from.get(path), after: to.get(path) }))
    .filter(({ before, after }) => !sameNode(before, after));
}

/** For messages: what a failing test prints. */
export const printed = (nodes: Nodes): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...nodes]
      .map(([path, node]): [string, string] => [path, shown(node).join(" ")])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

/** The tree after the edit; undefined where the edit makes no sense, and then it is not made on disk either. */
export function edited(nodes: Nodes, edit: Edit): Nodes | undefined {
  const now = nodes.get(edit.path);
  const next = new Map(nodes);
  switch (edit.kind) {
    case "put":
      clear(next, edit.path, edit.node);
      next.set(edit.path, edit.node);
      return next;
    case "delete":
      if (now === undefined) return undefined;
      for (const path of nodes.keys()) if (isIn(path, edit.path)) next.delete(path);
      return next;
    case "chmod":
      if (now === undefined || now.kind === "link" || now.mode === edit.mode) return undefined;
      next.set(edit.path, { ...now, mode: edit.mode });
      return next;
    case "rename": {
      const blocked = now === undefined || isIn(edit.to, edit.path) || isIn(edit.path, edit.to);
      if (blocked || nodes.has(edit.to) || ancestors(edit.to).some((path) => !isDirectory(nodes.get(path))))
        return undefined;
      for (const [path, node] of nodes) {
        if (!isIn(path, edit.path)) continue;
        next.delete(path);
        next.set(edit.to + path.slice(edit.path.length), node);
      }
      return next;
    }
  }
}

function clear(nodes: Map<string, Node>, path: string, node: Node): void {
  for (const above of ancestors(path)) {
    if (!isDirectory(nodes.get(above))) nodes.set(above, { kind: "directory", mode: 0o755 });
  }
  if (!(isDirectory(node) && isDirectory(nodes.get(path)))) {
    for (const other of [...nodes.keys()]) if (isBelow(other, path)) nodes.delete(other);
  }
}

// ── on disk ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function bytesOf(path: string): Buffer {
  const parts: Buffer[] = [];
  for (const char of path) {
    const code = char.charCodeAt(0);
    parts.push(
      char.length === 1 && code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - 0xdc00]) : Buffer.from(char),
    );
  }
  return Buffer.concat(parts);
}

function pathOf(name: Buffer): string {
  const text = name.toString("utf8");
  if (Buffer.from(text).equals(name)) return text;
  // The names of these trees are ASCII but for single bytes that are not UTF-8.
  return [...name].map((byte) => String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte)).join("");
}

export const placeOf = (root: string, path: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), bytesOf(path)]);

/** Makes an edit that `edited` allows, as a program would that is not ours. Files are written in place. */
export function makeEdit(root: string, before: Nodes, edit: Edit): void {
  const place = placeOf(root, edit.path);
  switch (edit.kind) {
    case "put":
      put(root, place, before, edit);
      break;
    case "delete":
      fs.rmSync(place, { recursive: true });
      break;
    case "chmod":
      fs.chmodSync(place, edit.mode);
      break;
    case "rename":
      fs.renameSync(place, placeOf(root, edit.to));
      break;
  }
}

function put(root: string, place: Buffer, before: Nodes, { path, node }: Extract<Edit, { kind: "put" }>): void {
  for (const above of [...ancestors(path)].reverse()) {
    const now = fs.lstatSync(placeOf(root, above), { throwIfNoEntry: false });
    if (now?.isDirectory() === true) continue;
    if (now !== undefined) fs.unlinkSync(placeOf(root, above));
    fs.mkdirSync(placeOf(root, above));
    fs.chmodSync(placeOf(root, above), 0o755);
  }
  const now = before.get(path);
  if (now !== undefined && (now.kind !== node.kind || now.kind === "link")) fs.rmSync(place, { recursive: true });
  if (node.kind === "link") fs.symlinkSync(node.target, place);
  else {
    if (node.kind === "file") fs.writeFileSync(place, node.bytes, "latin1");
    else fs.mkdirSync(place, { recursive: true });
    fs.chmodSync(place, node.mode);
  }
}

/** What is on disk, and of what is no directory the identity and time stamp that an untouched entry keeps (U6). */
export interface Disk {
  readonly nodes: Nodes;
  readonly stamps: ReadonlyMap<string, string>;
}

export function lookAt(root: string): Disk {
  const nodes = new Map<string, Node>();
  const stamps = new Map<string, string>();
  const visit = (directory: Buffer, prefix: string): void => {
    for (const name of fs.readdirSync(directory, { encoding: "buffer" })) {
      const place = Buffer.concat([directory, Buffer.from("/"), name]);
      const path = prefix + pathOf(name);
      const stat = fs.lstatSync(place, { bigint: true });
      const mode = Number(stat.mode & 0o7777n);
      if (stat.isDirectory()) {
        nodes.set(path, { kind: "directory", mode });
        visit(place, `${path}/`);
        continue;
      }
      stamps.set(path, `${stat.ino} ${stat.mtimeNs}`);
      if (stat.isSymbolicLink()) nodes.set(path, { kind: "link", target: fs.readlinkSync(place) });
      else nodes.set(path, { kind: "file", mode, bytes: fs.readFileSync(place, "latin1") });
    }
  };
  visit(Buffer.from(root), "");
  return { nodes, stamps };
}
