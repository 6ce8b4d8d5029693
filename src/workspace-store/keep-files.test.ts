import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import type { WorkspacePath } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { KeptFile } from "./contracts.js";
import { fileEntryOf, keepFiles } from "./keep-files.js";
import { createWorkspaceStore } from "./store.js";

const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
});
const tempDir = (): string => {
  dirs.push(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-keep-")));
  return dirs.at(-1) as string;
};

const name = fc.constantFrom("a", "b", "c.txt", "é", "Z", "z-");
const files: fc.Arbitrary<KeptFile[]> = fc
  .uniqueArray(fc.tuple(fc.array(name, { maxLength: 3 }), name), { minLength: 1, maxLength: 8, selector: ([, n]) => n })
  .chain((places) =>
    fc.tuple(
      ...places.map(([parents, last]) =>
        fc.record({
          // Files end in ".f", so that none is a directory of another.
          path: fc.constant([...parents, `${last}.f`].join("/") as WorkspacePath),
          bytes: fc.uint8Array({ maxLength: 64 }),
          mode: fc.constantFrom(0o644, 0o600, 0o755),
        }),
      ),
    ),
  );

it("kept files are a snapshot of exactly these paths, whose ref is the one a capture of such a tree has (U4, G6)", async () => {
  const store = createWorkspaceStore(createMemoryStorage());
  await fc.assert(
    fc.asyncProperty(files, async (kept) => {
      const ref = await store.keep(kept);
      const root = tempDir();
      for (const { path: file, bytes, mode } of kept) {
        fs.mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
        fs.writeFileSync(path.join(root, file), bytes);
        fs.chmodSync(path.join(root, file), mode);
      }
      for (const dir of fs.readdirSync(root, { recursive: true, withFileTypes: true })) {
        if (dir.isDirectory()) fs.chmodSync(path.join(dir.parentPath, dir.name), 0o755);
      }
      expect((await store.capture({ root })).ref).toBe(ref);
      const tree = await store.open(ref);
      for (const { path: file, bytes, mode } of kept) {
        expect(await tree.lookup(file)).toEqual(fileEntryOf(bytes, mode));
      }
    }),
    { numRuns: 25 },
  );
});

it("a file of more than a piece is kept in pieces and read back whole", async () => {
  const store = createWorkspaceStore(createMemoryStorage());
  const bytes = Buffer.alloc(2_500_000, "piece by piece ");
  const ref = await store.keep([{ path: "big" as WorkspacePath, bytes, mode: 0o644 }]);
  const entry = await (await store.open(ref)).lookup("big" as WorkspacePath);
  expect(entry).toEqual(fileEntryOf(bytes, 0o644));
  const read: Buffer[] = [];
  if (entry?.kind === "file") for await (const piece of store.read(entry)) read.push(Buffer.from(piece));
  expect(Buffer.concat(read).equals(bytes)).toBe(true);
});

it("what vanishes from the store while it is kept is written again", async () => {
  const storage = createMemoryStorage();
  const { ObjectStore } = await import("./object-store.js");
  const { Pins } = await import("./pins.js");
  const { blobs } = storage;
  const environment = { blobs, objects: new ObjectStore(blobs), pins: new Pins(blobs) };
  const file = { path: "a" as WorkspacePath, bytes: Buffer.from("kept"), mode: 0o644 };
  const first = await keepFiles(environment, [file]);
  for await (const { key } of storage.blobs.list("packs/")) await storage.blobs.delete(key);
  expect(await keepFiles(environment, [file])).toBe(first);
  expect(await createWorkspaceStore(storage).has(first)).toBe(true);
});
