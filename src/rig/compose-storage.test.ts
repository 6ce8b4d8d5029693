import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mintSessionId } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Leaser, Storage } from "../storage/index.js";
import { blobsConformance, kvConformance, leaserConformance, ledgerConformance } from "../storage/testing/index.js";
import { openWorkspace } from "../workspace/index.js";
import { composeStorage } from "./compose-storage.js";

const three = () => {
  const [sessions, snapshots, rootLeases] = [createMemoryStorage(), createMemoryStorage(), createMemoryStorage()];
  return { sessions, snapshots, rootLeases, composed: composeStorage({ sessions, snapshots, rootLeases }) };
};
const bytes = (text: string): Uint8Array => Buffer.from(text);
const claim = () => ({ sessionId: mintSessionId(), command: "test" });

async function keysOf({ ledger, kv, blobs }: Storage): Promise<readonly string[]> {
  const found = [...(await ledger.list("")), ...(await kv.list("")).map(({ key }) => key)];
  for await (const { key } of blobs.list("")) found.push(key);
  return found;
}

// It keeps the contracts of what it is made of; closing is its parts' owners'.
const composition = {
  open: (): Storage => {
    const { composed, ...parts } = three();
    const close = async (): Promise<void> => {
      for (const part of Object.values(parts)) await part.close();
    };
    return { ...composed, close };
  },
};
ledgerConformance("composed storage", composition);
leaserConformance("composed storage", composition);
kvConformance("composed storage", composition);
blobsConformance("composed storage", composition);

describe("a storage made of three", () => {
  let root: string;
  beforeEach(() => {
    root = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
  });
  afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

  test("keeps what a session owns in the first, what a root owns in the second, root leases in the third", async () => {
    const { sessions, snapshots, rootLeases, composed } = three();
    fs.writeFileSync(path.join(root, "file"), "one");
    const workspace = await openWorkspace({ root, storage: composed });
    const held = async (leaser: Leaser) => (await leaser.list("")).map(({ name }) => name.split("/")[0]);
    expect(await held(sessions.leaser)).toEqual(["sessions"]);
    expect(await held(snapshots.leaser)).toEqual([]);
    expect(await held(rootLeases.leaser)).toEqual(["workspace-roots"]);
    expect(await held(composed.leaser)).toEqual(["sessions", "workspace-roots"]);
    // A command line too long for the ledger is stored beside it.
    await workspace.exec(["true", "x".repeat(70_000)], { stdio: "ignore" });
    fs.writeFileSync(path.join(root, "file"), "two");
    const { ref } = await workspace.checkpoint();
    fs.writeFileSync(path.join(root, "file"), "three");
    await workspace.restore(ref, { exact: true });
    expect(fs.readFileSync(path.join(root, "file"), "utf8")).toBe("two");
    const { sessionId } = workspace;
    await workspace.close();

    const places = async (storage: Storage) => new Set((await keysOf(storage)).map((key) => key.split("/")[0]));
    expect(await places(sessions)).toEqual(new Set(["sessions", "catalog", "records"]));
    expect(await places(rootLeases)).toEqual(new Set());
    const ofRoots = await places(snapshots);
    for (const place of ["roots", "packs"]) expect(ofRoots).toContain(place);
    for (const place of ["sessions", "catalog", "records"]) expect(ofRoots).not.toContain(place);

    // The session store alone is enough to read the session, as `readSession` does.
    const types: string[] = [];
    for await (const { type } of createSessionStore(sessions).read(sessionId)) types.push(type);
    expect(types).toContain("turn-started");
    expect(types).toContain("workspace-restored");
  });

  test("lists every part in the order of keys, each key once", async () => {
    const { sessions, snapshots, composed } = three();
    const names = ["a", "catalog.x", "catalog/1", "catalog/2", "catalog0", "records/1", "records/2", "zz"];
    for (const name of names) {
      await composed.kv.set(name, bytes(name), { revision: 0 });
      await composed.blobs.put(name, [bytes(name)]);
    }
    // What lies under a key that leads elsewhere cannot be reached, and so is not listed.
    await snapshots.kv.set("catalog/lost", bytes("x"), { revision: 0 });
    await snapshots.blobs.put("records/lost", [bytes("x")]);
    const listed = async (prefix: string) => {
      const blobs: string[] = [];
      for await (const { key } of composed.blobs.list(prefix)) blobs.push(key);
      return [(await composed.kv.list(prefix)).map(({ key }) => key), blobs];
    };
    expect(await listed("")).toEqual([names, names]);
    expect(await listed("c")).toEqual([names.slice(1, 5), names.slice(1, 5)]);
    expect(await listed("catalog/")).toEqual([names.slice(2, 4), names.slice(2, 4)]);
    expect(await listed("records/2")).toEqual([["records/2"], ["records/2"]]);
    expect(await listed("zz")).toEqual([["zz"], ["zz"]]);
    expect((await sessions.kv.list("")).map(({ key }) => key)).toEqual(["catalog/1", "catalog/2"]);
  });

  test("writes where any of them does, and is as private as the one that keeps trees", () => {
    const [a, b, c] = ["/a", "/b", "/c"].map((where) => ({
      ...createMemoryStorage(),
      persistencePaths: () => [where, "/all"],
    }));
    if (a === undefined || b === undefined || c === undefined) throw new Error("three");
    const snapshots: Storage = { ...b, locality: "remote", spoolDir: "/spool" };
    const composed = composeStorage({ sessions: a, snapshots, rootLeases: c });
    expect([...composed.persistencePaths()].sort()).toEqual(["/a", "/all", "/b", "/c"]);
    expect([composed.locality, composed.spoolDir]).toEqual(["remote", "/spool"]);
  });

  test("leaves its parts open when it is closed", async () => {
    const { sessions, composed } = three();
    await composed.close();
    await sessions.kv.set("catalog/1", bytes("x"), { revision: 0 });
    expect(await composed.kv.get("catalog/1")).toMatchObject({ revision: 1 });
  });
});

describe("P4: a leaser that renames", () => {
  const renaming = (storage: Storage): Storage => ({
    ...storage,
    leaser: {
      acquire: (name, ...rest) => storage.leaser.acquire(name.slice(0, 20), ...rest),
      inspect: (name, ...rest) => storage.leaser.inspect(name.slice(0, 20), ...rest),
      list: (prefix, ...rest) => storage.leaser.list(prefix, ...rest),
    },
  });

  test("is lease_name_invalid, and keeps no lease", async () => {
    const { sessions, snapshots, rootLeases } = three();
    const composed = composeStorage({ sessions, snapshots, rootLeases: renaming(rootLeases) });
    const name = `workspace-roots/${"ab".repeat(32)}`;
    await expect(composed.leaser.acquire(name, claim())).rejects.toThrow(
      expect.objectContaining({ code: "workspace_placement.lease_name_invalid", details: { name: name.slice(0, 20) } }),
    );
    expect(await rootLeases.leaser.list("")).toEqual([]);
  });

  test("lets no workspace be opened, and no session lease is kept either", async () => {
    const { sessions, snapshots, rootLeases } = three();
    const composed = composeStorage({ sessions, snapshots, rootLeases: renaming(rootLeases) });
    const root = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
    try {
      await expect(openWorkspace({ root, storage: composed })).rejects.toThrow(
        expect.objectContaining({ code: "workspace_placement.lease_name_invalid" }),
      );
      expect(await composed.leaser.list("")).toEqual([]);
    } finally {
      fs.rmSync(root, { recursive: true, force: true });
    }
  });
});
