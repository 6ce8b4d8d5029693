/** Trees as a careful engine fears them: names of any bytes, sizes around every boundary, all kinds and modes. */
import { createCipheriv, hash } from "node:crypto";
import fs from "node:fs";
import fc from "fast-check";
import { nameFromBytes, toFsPath } from "../../src/core/index.js";

/** What a file holds, small enough to print: bytes are made of it when they are written. */
export interface Content {
  readonly size: number;
  readonly seed: number;
  /** Random bytes do not shrink, text does, zeros are all alike. */
  readonly fill: "random" | "text" | "zeros";
}
export type AwkwardEntry =
  | { readonly kind: "file"; readonly mode: number; readonly content: Content }
  | { readonly kind: "directory"; readonly mode: number; readonly entries: AwkwardTree }
  | { readonly kind: "symlink"; readonly target: string };
/** Names are unique within a directory. */
export type AwkwardTree = readonly (readonly [name: string, entry: AwkwardEntry])[];

const KiB = 1024;
const MiB = 1024 * KiB;

const isName = (bytes: Uint8Array): boolean =>
  !bytes.includes(0) && !bytes.includes(0x2f) && !/^\.{1,2}$/.test(Buffer.from(bytes).toString("latin1"));

/** Any name a Linux file system takes, in the spelling of `core/names.ts`. */
export const anyName: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "A", "a.b", "a-b", "a0", "src", "é", "e\u0301", "\u{1f600}") },
  { weight: 1, arbitrary: fc.constantFrom("__proto__", "constructor", "toString", "length", "...", "-rf", "*") },
  { weight: 1, arbitrary: fc.constantFrom(" lead", "trail ", 'q"', "back\\slash", "tab\t", "new\nline", "\u202e") },
  {
    weight: 2,
    arbitrary: fc.uint8Array({ minLength: 1, maxLength: 6 }).filter(isName).map(nameFromBytes),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom("x", "é", "\udcff", "\u{1f600}"), fc.integer({ min: 250, max: 255 }))
      .map(([unit, length]) => {
        const bytes = unit === "\udcff" ? 1 : Buffer.byteLength(unit);
        return unit.repeat(Math.floor(length / bytes)).padEnd(Math.floor(length / bytes) * unit.length, "x");
      }),
  },
);

const around = (size: number): readonly number[] => [size - 1, size, size + 1];
const smallSize = fc.oneof(fc.nat(300), fc.constantFrom(0, 1, 63, 64, 65, 4095, 4096));
const largeSize = fc.constantFrom(...[...around(32 * KiB), ...around(64 * KiB), ...around(MiB), 2 * MiB, 3 * MiB + 17]);

export const anyContent: fc.Arbitrary<Content> = fc.record({
  size: fc.oneof({ weight: 12, arbitrary: smallSize }, { weight: 2, arbitrary: largeSize }),
  seed: fc.nat(40),
  fill: fc.constantFrom("random", "text", "zeros"),
});

const fileMode = fc.constantFrom(0o644, 0o755, 0o600, 0o444, 0o000, 0o777, 0o511);
const directoryMode = fc.constantFrom(0o755, 0o755, 0o700, 0o500, 0o777, 0o000);
const target = fc.oneof(
  fc.constantFrom("a", "..", ".", "/", "nowhere", " ", "x\udcff", "a/../b", "\n"),
  fc.constantFrom(255, 4095).map((length) => "t".repeat(length)),
);

export const anyFile: fc.Arbitrary<AwkwardEntry> = fc.record({
  kind: fc.constant("file"),
  mode: fileMode,
  content: anyContent,
});
export const anyLink: fc.Arbitrary<AwkwardEntry> = fc.record({ kind: fc.constant("symlink"), target });

const tied = fc.letrec<{ tree: AwkwardTree; entry: AwkwardEntry }>((tie) => ({
  tree: fc.uniqueArray(fc.tuple(anyName, tie("entry")), { selector: ([name]) => name, maxLength: 7 }),
  entry: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    anyFile,
    anyLink,
    fc.record({ kind: fc.constant("directory"), mode: directoryMode, entries: tie("tree") }),
  ),
}));
export const anyTree: fc.Arbitrary<AwkwardTree> = tied.tree;
export const anyEntry: fc.Arbitrary<AwkwardEntry> = tied.entry;

/** The bytes of a content; the same for the same description. */
export function bytesOf({ size, seed, fill }: Content): Buffer {
  if (fill === "zeros") return Buffer.alloc(size);
  if (fill === "text") return Buffer.alloc(size, `line ${seed} of something that was written\n`);
  // A key stream: as random as a compressor could fear, and the same in every run.
  const key = hash("sha256", `seed ${seed}`, "buffer").subarray(0, 16);
  return createCipheriv("aes-128-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(size));
}

/** Makes one entry where nothing stands. Modes are exact whatever the umask. */
export function writeEntry(at: string, entry: AwkwardEntry): void {
  switch (entry.kind) {
    case "file":
      fs.writeFileSync(toFsPath(at), bytesOf(entry.content));
      fs.chmodSync(toFsPath(at), entry.mode);
      return;
    case "directory":
      fs.mkdirSync(toFsPath(at));
      writeAwkwardTree(at, entry.entries);
      fs.chmodSync(toFsPath(at), entry.mode);
      return;
    case "symlink":
      fs.symlinkSync(toFsPath(entry.target), toFsPath(at));
      return;
  }
}

export function writeAwkwardTree(dir: string, tree: AwkwardTree): void {
  for (const [name, entry] of tree) writeEntry(`${dir}/${name}`, entry);
}
