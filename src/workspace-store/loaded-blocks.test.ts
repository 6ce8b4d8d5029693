import { randomBytes } from "node:crypto";
import { beforeEach, expect, it } from "vitest";
import type { WorkspacePath } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import { decodeBatches } from "./decode-lane.js";
import { loadedBlocks } from "./loaded-blocks.js";
import type { DecodingHelper } from "./loaded-blocks.js";
import { pathOf, planTree } from "./materialize-plan.js";
import { ObjectStore } from "./object-store.js";
import { createWorkspaceStore } from "./store.js";
import { inStoredOrder } from "./stored-order.js";

/** Does the part of a helper in this thread. */
const inThread: DecodingHelper = { run: (request) => decodeBatches(request as Parameters<typeof decodeBatches>[0]) };

let storage: Storage;
beforeEach(() => {
  storage = createMemoryStorage();
});

/** Some two megabytes twice over: small and large ones, text and noise, a copy. */
function contents(): Map<string, Buffer> {
  const files = new Map<string, Buffer>([["empty", Buffer.alloc(0)]]);
  for (let i = 0; i < 400; i++) files.set(`d${i % 9}/text${i}`, Buffer.from(`line ${i}\n`.repeat(i * 3)));
  for (let i = 0; i < 30; i++) files.set(`noise${i}`, randomBytes(90_000));
  files.set("copy", files.get("noise3") ?? Buffer.alloc(1));
  files.set("large", randomBytes(1024 * 1024 + 1));
  return files;
}

async function load(files: ReadonlyMap<string, Buffer>, helper: DecodingHelper | undefined) {
  const store = createWorkspaceStore(storage);
  const ref = await store.keep(
    [...files].map(([path, bytes]) => ({ path: path as WorkspacePath, bytes, mode: 0o644 })),
  );
  const plan = await planTree(await store.open(ref), {});
  const objects = new ObjectStore(storage.blobs);
  await objects.load();
  const given = new Map<string, Buffer | undefined>();
  const blocks = await inStoredOrder(objects, plan.files, () => undefined);
  for await (const block of loadedBlocks(objects, blocks, helper)) {
    for (const file of block.files) {
      const bytes = block.bytesOf(file);
      given.set(pathOf(file), bytes && Buffer.from(bytes));
    }
  }
  return given;
}

it("a helper gives the bytes of every small file, and leaves large ones to the reader", async () => {
  const files = contents();
  const given = await load(files, inThread);
  expect([...given.keys()].sort()).toEqual([...files.keys()].sort());
  for (const [path, bytes] of files) {
    if (path === "large") expect(given.get(path)).toBeUndefined();
    else expect(given.get(path)?.equals(bytes), path).toBe(true);
  }
});

it("without one every file is there to be read", async () => {
  const files = contents();
  const given = await load(files, undefined);
  expect(given.size).toBe(files.size);
  expect([...given.values()].every((bytes) => bytes === undefined)).toBe(true);
});

it("no byte that is wrong in the store is given, and all the others are", async () => {
  const files = contents();
  await load(files, undefined);
  for await (const { key } of storage.blobs.list("packs/")) {
    const bytes = Buffer.from(await storage.blobs.get(key));
    const at = bytes.indexOf((files.get("noise7") as Buffer).subarray(40_000, 40_064));
    expect(at).toBeGreaterThan(0);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    await storage.blobs.delete(key);
    await storage.blobs.put(key, [bytes]);
  }
  const given = await load(files, inThread);
  expect(
    [...given]
      .filter(([, bytes]) => bytes === undefined)
      .map(([path]) => path)
      .sort(),
  ).toEqual(["large", "noise7"]);
  for (const [path, bytes] of given) if (bytes) expect(bytes.equals(files.get(path) as Buffer), path).toBe(true);
});

it("what a helper that dies still owed is left to the reader", async () => {
  const files = contents();
  let answers = 0;
  const dying: DecodingHelper = {
    run: (request) =>
      new Promise((resolve) => {
        if (request.kind !== "decode") return;
        const { port } = request;
        const post = port.postMessage.bind(port);
        port.postMessage = (message: unknown) => {
          if (++answers <= 2) post(message);
          else {
            port.close();
            resolve();
          }
        };
        void decodeBatches(request);
      }),
  };
  const given = await load(files, dying);
  expect(given.size).toBe(files.size);
  expect([...given.values()].filter((bytes) => bytes === undefined).length).toBeGreaterThan(5);
  for (const [path, bytes] of given) if (bytes) expect(bytes.equals(files.get(path) as Buffer), path).toBe(true);
});
