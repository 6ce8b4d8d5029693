/** Files that change while, or just after, they are looked at: a capture holds a state they had, and never an old one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem, parseWorkspacePath, rootPath } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { TreeEntry, WorkspaceStore } from "./contracts.js";
import { objectIdOf, pieceBytes } from "./object-ids.js";
import { createWorkspaceStore } from "./store.js";
import { temporaryDirectory } from "./testing/tree-on-disk.js";

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
let target: string;
beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
  target = path.join(root, "a");
});
afterEach(() => {
  base.dispose();
});

/** A file system whose stamps show only multiples of `stepMs`. */
function coarse(stepMs: number): FileSystem {
  const round = (stats: fs.BigIntStats) => {
    const step = BigInt(stepMs) * 1_000_000n;
    stats.mtimeNs -= stats.mtimeNs % step;
    stats.ctimeNs -= stats.ctimeNs % step;
    return stats;
  };
  return {
    ...nodeFileSystem,
    lstat: (at) => round(nodeFileSystem.lstat(at)),
    fstat: (fd) => round(nodeFileSystem.fstat(fd)),
  };
}

describe("a second write of the same size right after a capture", () => {
  it("is found although size and modification time were set back (G3)", async () => {
    const store = createWorkspaceStore(createMemoryStorage(), { now: () => Date.now() + 60_000 });
    fs.writeFileSync(target, "AAAA");
    const old = new Date("2020-01-01T00:00:00Z");
    fs.utimesSync(target, old, old);
    const first = await store.capture({ root });
    expect((await store.capture({ root })).bytesRead).toBe(0);
    fs.writeFileSync(target, "BBBB");
    fs.utimesSync(target, old, old);
    const second = await store.capture({ root });
    expect(second.ref).not.toBe(first.ref);
    expect(second.bytesRead).toBe(4);
  });

  it("is found after the clock was set back", async () => {
    let ahead = 0;
    const store = createWorkspaceStore(createMemoryStorage(), { now: () => Date.now() - ahead });
    fs.writeFileSync(target, "AAAA");
    const first = await store.capture({ root });
    ahead = 3_600_000;
    fs.writeFileSync(target, "BBBB");
    for (let i = 0; i < 3; i++) {
      const next = await store.capture({ root });
      expect(next.ref).not.toBe(first.ref);
      // Its stamps lie in the future, so it is read every time.
      expect(next.bytesRead).toBeGreaterThan(0);
    }
  });
});

async function contentOf(store: WorkspaceStore, entry: Extract<TreeEntry, { kind: "file" }>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of store.read(entry)) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** The one number a file is filled with; "halfway" where the next one has replaced the beginning of it. */
function generations(bytes: Buffer): string {
  const first = bytes[0] as number;
  const change = bytes.findIndex((byte) => byte !== first);
  if (change < 0) return `${first}`;
  const rest = bytes.subarray(change);
  const previous = first === 1 ? 250 : first - 1;
  return rest.equals(Buffer.alloc(rest.length, previous)) ? "halfway" : `torn at ${change}`;
}

describe("C106 a write during the read", () => {
  const large = 3 * 1024 * 1024;

  it("gives a state the file had, whatever moments the writer chooses and however coarse the stamps", async () => {
    const schedule = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(schedule, fc.boolean(), async (writesBeforeRead, rewritesAll) => {
        // The writer goes round the file, a third at a time, each round with the next letter.
        const state = Buffer.alloc(large, 0x41);
        fs.writeFileSync(target, state);
        const states = new Set([objectIdOf(state)]);
        let step = 0;
        const write = () => {
          const at = rewritesAll ? 0 : (step % 3) * pieceBytes;
          state.fill(0x42 + Math.floor(step / 3), at, rewritesAll ? large : at + pieceBytes);
          step++;
          fs.writeFileSync(target, state, { flag: "r+" });
          states.add(objectIdOf(state));
        };
        let reads = 0;
        const interleaved = interceptFileSystem(coarse(2_000), ({ name }) => {
          if (name !== "read") return;
          for (const planned of writesBeforeRead) if (planned === reads) write();
          reads++;
        });
        // The clock stands well ahead of quiet and well before settled.
        const options = { fileSystem: interleaved, now: () => Date.now() + 500 };
        const store = createWorkspaceStore(createMemoryStorage(), options);
        const { tree } = await store.capture({ root });
        const entry = await tree.lookup(parseWorkspacePath("a"));
        if (entry?.kind !== "file") expect(entry).toEqual({ kind: "omitted", class: "unstable" });
        else expect(states).toContain(objectIdOf(await contentOf(store, entry)));
      }),
      { numRuns: 25 },
    );
  });

  it("by another process that never stops gives one generation, or is recorded as unstable", async () => {
    // Rewrites a large file in place, each time filled with one number, and appends to a log.
    const writer = spawn(process.execPath, [
      "-e",
      `const fs = require("fs"); const fd = fs.openSync(${JSON.stringify(target)}, "w+");
       for (let n = 1; ; n = n % 250 + 1) {
         fs.writeSync(fd, Buffer.alloc(${large}, n), 0, ${large}, 0);
         fs.appendFileSync(${JSON.stringify(path.join(root, "log"))}, "line " + n + "\\n");
         if (n === 1) process.stdout.write(".");
       }`,
    ]);
    try {
      await once(writer.stdout, "data");
      const store = createWorkspaceStore(createMemoryStorage());
      for (let i = 0; i < 10; i++) {
        const { tree, completeness } = await store.capture({ root });
        const entries = await tree.list(rootPath);
        expect(entries.map(([name]) => name)).toEqual(["a", "log"]);
        expect(completeness).toBe(entries.some(([, { kind }]) => kind === "omitted") ? "partial" : "complete");
        for (const [name, entry] of entries) {
          if (entry.kind !== "file") continue;
          const bytes = await contentOf(store, entry);
          expect(bytes.length).toBe(entry.size);
          // A writer that lost the processor in mid-write leaves the new generation in front of the one before it; a
          // torn read would show them the other way round, or several.
          if (name === "a") expect(generations(bytes)).toMatch(/^(\d+|halfway)$/);
          else expect(fs.readFileSync(path.join(root, "log")).subarray(0, bytes.length).equals(bytes)).toBe(true);
        }
      }
    } finally {
      writer.kill("SIGKILL");
      await once(writer, "exit");
    }
  });
});
