/** Refs are frozen (G6): these vectors were written once and must never change. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compareNames, nameFromBytes } from "../core/index.js";
import type { ContentId, TreeEntry, TreeId } from "./contracts.js";
import { contentIdOf, encodePieces, objectIdOf, pieceBytes, refOf } from "./object-ids.js";
import { encodeTree, omissionClasses } from "./tree-codec.js";

interface GoldenEntry {
  readonly name: string;
  readonly kind: TreeEntry["kind"];
  readonly mode?: number;
  /** The content is `size` bytes whose values count up modulo 251. */
  readonly size?: number;
  readonly target?: string;
  readonly class?: string;
  readonly entries?: readonly GoldenEntry[];
}
interface Golden {
  readonly about: string;
  readonly contents: readonly { readonly size: number; readonly id: string }[];
  readonly trees: readonly {
    readonly of: string;
    readonly entries: readonly GoldenEntry[];
    readonly id: string;
    readonly ref: string;
  }[];
}

const golden = JSON.parse(readFileSync(new URL("golden.json", import.meta.url), "utf8")) as Golden;

const counting = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, i) => i % 251);

function idOfSize(size: number): ContentId {
  const bytes = counting(size);
  if (size <= pieceBytes) return contentIdOf(bytes);
  const ids: string[] = [];
  for (let at = 0; at < size; at += pieceBytes) ids.push(objectIdOf(bytes.subarray(at, at + pieceBytes)));
  return objectIdOf(encodePieces(size, ids)) as ContentId;
}

/** Names in the file are spelled with one hex escape, `%XX`, per byte that JSON could not hold. */
const nameOf = (spelled: string): string =>
  spelled.includes("%")
    ? nameFromBytes(
        Buffer.concat(
          spelled
            .split(/(%[0-9A-F]{2})/)
            .map((part) => (part.startsWith("%") ? Buffer.from(part.slice(1), "hex") : Buffer.from(part))),
        ),
      )
    : spelled;

function treeId(entries: readonly GoldenEntry[]): TreeId {
  const named = entries.map((golden): [string, TreeEntry] => {
    const { kind, mode = 0, size = 0, target = "" } = golden;
    const name = nameOf(golden.name);
    switch (kind) {
      case "file":
        return [name, { kind, mode, size, id: idOfSize(size) }];
      case "directory":
        return [name, { kind, mode, id: treeId(golden.entries ?? []) }];
      case "symlink":
        return [name, { kind, target: nameOf(target) }];
      case "omitted":
        return [name, { kind, class: omissionClasses.find((known) => known === golden.class) ?? "special" }];
    }
  });
  return objectIdOf(encodeTree(named.sort(([a], [b]) => compareNames(a, b)))) as TreeId;
}

describe("golden vectors", () => {
  it.each(golden.contents)("a file of $size bytes keeps its id", ({ size, id }) => {
    expect(idOfSize(size)).toBe(id);
  });

  it.each(golden.trees)("$of keeps its id and ref", ({ entries, id, ref }) => {
    expect(treeId(entries)).toBe(id);
    expect(refOf(id as TreeId)).toBe(ref);
  });

  it("covers every kind of entry and every class of omission (U14, G6)", () => {
    const all = golden.trees.flatMap(({ entries }) => entries);
    expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(["file", "directory", "symlink", "omitted"]));
    expect(new Set(all.flatMap((entry) => entry.class ?? []))).toEqual(new Set(omissionClasses));
  });
});
