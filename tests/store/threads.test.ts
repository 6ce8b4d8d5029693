/** Captures with helper threads: what they find is what one thread finds, and losing them loses nothing. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { nodeFileSystem } from "../../src/core/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { endHelpers, isHelperReady, useWorkerFile } from "../../src/workspace-store/lanes.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { WorkspaceStore } from "../../src/workspace-store/index.js";
import {
  directory,
  file,
  symlink,
  temporaryDirectory,
  writeTree,
} from "../../src/workspace-store/testing/tree-on-disk.js";
import type { DiskTree } from "../../src/workspace-store/testing/tree-on-disk.js";
import { builtFile } from "../build.js";

const compiled = () => pathToFileURL(builtFile("src/workspace-store/capture-worker.ts"));
const mebibyte = 1024 * 1024;

let dir: ReturnType<typeof temporaryDirectory>;
let root: string;
beforeEach(() => {
  dir = temporaryDirectory();
  root = path.join(dir.path, "tree");
  fs.mkdirSync(root);
});
afterEach(async () => {
  await endHelpers();
  dir.dispose();
});

/** A store that never uses threads: it is given a file system of its own. */
const alone = (): WorkspaceStore => createWorkspaceStore(createMemoryStorage(), { fileSystem: { ...nodeFileSystem } });

/** Enough bytes for helpers to be started, in small files, copies and one large file with a hole. */
function buildTree(): void {
  const tree: Record<string, DiskTree[string]> = { link: symlink("d1/f1"), "x\udcff": file("bytes") };
  for (let d = 0; d < 30; d++) {
    const entries: Record<string, DiskTree[string]> = {};
    for (let f = 0; f < 20; f++) entries[`f${f}`] = file(f % 4 === 3 ? "the same" : `${d} ${f} `.repeat(f * 40));
    tree[`d${d}`] = directory({ ...entries, "d\udce9": directory({ deep: file(`deep ${d}`) }) });
  }
  const large = Buffer.alloc(20 * mebibyte + 5);
  randomBytes(3 * mebibyte).copy(large, 7 * mebibyte);
  writeTree(root, { ...tree, large: file(large) });
}

describe("a capture with helper threads", () => {
  beforeAll(() => {
    useWorkerFile(compiled());
  });
  afterAll(() => {
    useWorkerFile(new URL("file:///nowhere"));
  });

  it("finds and stores what one thread finds and stores", async () => {
    buildTree();
    const store = createWorkspaceStore(createMemoryStorage());
    const expected = await alone().capture({ root });
    const captured = await store.capture({ root });
    expect(isHelperReady()).toBe(true);
    expect(captured.ref).toBe(expected.ref);
    expect(captured.files).toBe(expected.files);
    // Nothing twice: the threads told each other what they had. Blocks fall a little differently.
    expect(captured.bytesStored).toBeLessThan(expected.bytesStored * 1.05);
    expect((await store.verify({ refs: [captured.ref] })).damaged).toEqual([]);
    const again = await store.capture({ root });
    expect(again.ref).toBe(expected.ref);
    expect(again.bytesStored).toBe(0);
  });

  it("looks at a known tree together, and finds every change in it", async () => {
    const tree: Record<string, DiskTree[string]> = {};
    for (let d = 0; d < 70; d++) {
      tree[`d${d}`] = directory(Object.fromEntries(Array.from({ length: 60 }, (_, f) => [`f${f}`, file(`${d} ${f}`)])));
    }
    writeTree(root, { ...tree, large: file(randomBytes(17 * mebibyte)) });
    const store = createWorkspaceStore(createMemoryStorage());
    // Known for good once no stamp is young any more.
    await expect.poll(async () => (await store.capture({ root })).bytesRead, { timeout: 20_000 }).toBe(0);
    for (let d = 0; d < 70; d += 7) {
      fs.writeFileSync(path.join(root, `d${d}/f${d % 60}`), "edited");
      fs.rmSync(path.join(root, `d${d}/f59`));
      fs.writeFileSync(path.join(root, `d${d}/new`), "new");
    }
    const changed = await store.capture({ root });
    expect(changed.ref).toBe((await alone().capture({ root })).ref);
    expect((await store.verify({ refs: [changed.ref] })).damaged).toEqual([]);
  });

  it("that is aborted ends all lanes and leaves what the next one uses", async () => {
    buildTree();
    const store = createWorkspaceStore(createMemoryStorage());
    const controller = new AbortController();
    const capture = store.capture({
      root,
      signal: controller.signal,
      onProgress: ({ bytesRead }) => {
        if (bytesRead > 0) controller.abort();
      },
    });
    await capture.catch((error: unknown) => {
      expect(error).toMatchObject({ code: "capture.canceled" });
    });
    expect((await store.capture({ root })).ref).toBe((await alone().capture({ root })).ref);
  });

  /** A store whose packs `onPack` sees, and may hold up, before they are written. */
  function storeThatTells(onPack: () => void | Promise<void>): WorkspaceStore {
    const storage = createMemoryStorage();
    const blobs = new Proxy(storage.blobs, {
      get: (target, name) =>
        name === "put"
          ? async (...put: Parameters<typeof target.put>) => {
              if (put[0].startsWith("packs/")) await onPack();
              return target.put(...put);
            }
          : (Reflect.get(target, name) as unknown),
    });
    return createWorkspaceStore({ ...storage, blobs });
  }

  /** Two packs' worth in a file that both lanes read, and enough small ones to go with it. */
  function buildLargeTree(): void {
    buildTree();
    fs.writeFileSync(path.join(root, "random"), randomBytes(40 * mebibyte));
  }

  const openBelowRoot = (): string[] =>
    fs.readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        const target = fs.readlinkSync(`/proc/self/fd/${fd}`);
        return target.startsWith(root) ? [target] : [];
      } catch {
        // Closed since it was listed.
        return [];
      }
    });

  it("that is aborted amid a large file leaves nothing of it open, in any thread", async () => {
    buildLargeTree();
    const controller = new AbortController();
    const store = storeThatTells(() => {
      controller.abort(new Error("enough"));
    });
    await expect(store.capture({ root, signal: controller.signal })).rejects.toMatchObject({
      code: "capture.canceled",
    });
    expect(openBelowRoot()).toEqual([]);
    const next = await store.capture({ root });
    expect(next.ref).toBe((await alone().capture({ root })).ref);
    expect((await store.verify()).damaged).toEqual([]);
  });

  it("that is aborted while a pack is written does not wait for the pack", async () => {
    buildLargeTree();
    const controller = new AbortController();
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let packs = 0;
    const store = storeThatTells(() => {
      packs++;
      controller.abort(new Error("enough"));
      return held;
    });
    // The pack is not written before this has ended.
    await expect(store.capture({ root, signal: controller.signal })).rejects.toMatchObject({
      code: "capture.canceled",
    });
    expect(packs).toBe(1);
    expect(openBelowRoot()).toEqual([]);
    goOn();
    const next = await store.capture({ root });
    expect(next.ref).toBe((await alone().capture({ root })).ref);
    expect((await store.verify()).damaged).toEqual([]);
  });

  it("of two roots at once are both right", async () => {
    buildTree();
    const other = path.join(dir.path, "other");
    execFileSync("cp", ["-a", root, other]);
    fs.writeFileSync(path.join(other, "more"), "more");
    const store = createWorkspaceStore(createMemoryStorage());
    const [one, two] = await Promise.all([store.capture({ root }), store.capture({ root: other })]);
    expect(one.ref).toBe((await alone().capture({ root })).ref);
    expect(two.ref).toBe((await alone().capture({ root: other })).ref);
    expect((await store.verify({ refs: [one.ref, two.ref] })).damaged).toEqual([]);
  });
});

describe("a helper that", () => {
  afterAll(() => {
    useWorkerFile(new URL("file:///nowhere"));
  });

  const counters = "new Int32Array(request.job.counters)";
  it.each([
    ["cannot be started", undefined],
    ["dies before it did anything", "process.exit(1)"],
    ["throws at once", "throw new Error('broken')"],
    ["takes work and dies over it", `Atomics.add(${counters}, 0, 3); process.exit(1)`],
    [
      "takes all work and does none of it",
      `Atomics.add(${counters}, 0, 1e6); parentPort.postMessage({ kind: "done" })`,
    ],
    [
      "claims everything and stores nothing",
      `if (request.claims) new Int32Array(request.claims).fill(7); parentPort.postMessage({ kind: "done" })`,
    ],
    [
      "says it has what it did not store",
      `if (request.kind === "read" && request.claims) {
         const hash = (bytes) => require("node:crypto").createHash("sha256").update(bytes).digest();
         const slots = new Int32Array(request.claims);
         const digest = hash("the same");
         slots[digest.readUInt32LE(0) & (slots.length - 1)] = digest.readInt32LE(4) || 1;
       }
       parentPort.postMessage({ kind: "done" })`,
    ],
  ])("%s costs time and nothing else", async (_, work) => {
    const script = path.join(dir.path, "worker.cjs");
    if (work !== undefined) {
      fs.writeFileSync(
        script,
        `const { parentPort } = require("node:worker_threads"); parentPort.on("message", (request) => { ${work} });`,
      );
    }
    useWorkerFile(pathToFileURL(script));
    buildTree();
    const store = createWorkspaceStore(createMemoryStorage());
    const captured = await store.capture({ root });
    expect(captured.ref).toBe((await alone().capture({ root })).ref);
    expect((await store.verify({ refs: [captured.ref] })).damaged).toEqual([]);
    expect((await store.capture({ root })).ref).toBe(captured.ref);
  });
});
