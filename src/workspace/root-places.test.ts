import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import type { CanonicalRoot, PlanId, SnapshotRef } from "../core/index.js";
import type { StoredIdentity } from "../session-store/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { hasMountsBelow } from "./mount-points.js";
import { identify, storedIdentity } from "./root-identity.js";
import { settlePlaces } from "./root-places.js";
import { RootReader } from "./root-reader.js";

let dir: string;
let root: CanonicalRoot;
let reader: RootReader;
const [staging, backup] = [".root.p.staging", ".root.p.backup"];
const ref = `v1:sha256:${"0".repeat(64)}` as SnapshotRef;

beforeEach(() => {
  dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"));
  root = path.join(dir, "root") as CanonicalRoot;
  reader = new RootReader({ storage: createMemoryStorage(), root, placement: "session" });
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

/** Makes a directory that holds its own description, and says which one it is. */
function make(name: string, content: string): StoredIdentity {
  fs.mkdirSync(path.join(dir, name));
  fs.writeFileSync(path.join(dir, name, "what"), content);
  const found = identify(nodeFileSystem, path.join(dir, name) as CanonicalRoot);
  if (found === undefined) throw new Error("it was just made");
  return storedIdentity(found);
}

async function renaming(stranger: StoredIdentity, built: StoredIdentity): Promise<void> {
  const swap = { phase: "renaming", planId: "p" as PlanId, target: ref, from: ref, stranger, backup, built } as const;
  await reader.record.update((data) => ({ ...data, staging, swap }));
}

/** What is where after settling, twice. */
async function settled() {
  for (let i = 0; i < 2; i++) await settlePlaces(reader, () => undefined);
  const places = fs.readdirSync(dir).map((name) => [name, fs.readFileSync(path.join(dir, name, "what"), "utf8")]);
  const { swap, staging: left, backups, identity } = (await reader.record.read()) ?? {};
  expect(left).toBe(undefined);
  return { places: Object.fromEntries(places) as object, phase: swap?.phase, backups, identity };
}

describe("an exchange that was cut short between its renames (U7)", () => {
  test("before the first: the stranger stays, what was built goes", async () => {
    await renaming(make("root", "stranger"), make(staging, "built"));
    expect(await settled()).toMatchObject({ places: { root: "stranger" }, phase: "staging" });
  });

  test("after the first: what was built takes the place", async () => {
    const built = make(staging, "built");
    await renaming(make(backup, "stranger"), built);
    expect(await settled()).toMatchObject({
      ...{ places: { root: "built", [backup]: "stranger" }, phase: "swapped", identity: built },
    });
  });

  test("after the first, and what was built is gone: the stranger is put back", async () => {
    const built = make(staging, "built");
    await renaming(make(backup, "stranger"), built);
    fs.rmSync(path.join(dir, staging), { recursive: true });
    expect(await settled()).toMatchObject({ places: { root: "stranger" }, phase: "staging" });
  });

  test("after the second: it is known to be done", async () => {
    const built = make("root", "built");
    await renaming(make(backup, "stranger"), built);
    expect(await settled()).toMatchObject({
      ...{ places: { root: "built", [backup]: "stranger" }, phase: "swapped", identity: built },
    });
  });

  test("something else is at the root by now: nothing is moved, and the backup is nobody's to remove", async () => {
    const built = make(staging, "built");
    await renaming(make(backup, "stranger"), built);
    make("root", "something else");
    expect(await settled()).toMatchObject({
      ...{ places: { root: "something else", [backup]: "stranger" }, phase: "staging", backups: [backup] },
    });
  });

  test("another directory has the backup's name: it is not touched", async () => {
    const [stranger, built] = [make("elsewhere", "stranger"), make(staging, "built")];
    await renaming(stranger, built);
    make(backup, "another");
    expect(await settled()).toMatchObject({ places: { [backup]: "another", elsewhere: "stranger" }, phase: "staging" });
  });

  test("the directory of the root is gone with everything: nothing is left to do", async () => {
    await renaming(make("root", "stranger"), make(staging, "built"));
    fs.rmSync(dir, { recursive: true });
    await settlePlaces(reader, () => undefined);
    expect((await reader.record.read())?.swap?.phase).toBe("staging");
  });

  test("a lease that was lost stops it before anything is moved (C5)", async () => {
    const built = make(staging, "built");
    await renaming(make(backup, "stranger"), built);
    const lost = new Error("lost");
    const settling = settlePlaces(reader, () => {
      throw lost;
    });
    await expect(settling).rejects.toBe(lost);
    expect(fs.readdirSync(dir).sort()).toEqual([backup, staging].sort());
  });
});

describe("what is mounted below a directory", () => {
  const table = (text: string): typeof nodeFileSystem => {
    const file = path.join(dir, "mountinfo");
    fs.writeFileSync(file, text);
    return {
      ...nodeFileSystem,
      open: (asked, flags, mode) => nodeFileSystem.open(asked === "/proc/self/mountinfo" ? file : asked, flags, mode),
    };
  };
  const line = (mountPoint: string): string =>
    `36 35 98:0 /mnt1 ${mountPoint} rw,noatime master:1 - ext3 /dev/root rw\n`;

  test("is found by the kernel's table, names with blanks too", () => {
    expect(hasMountsBelow(table(line("/") + line("/a\\040b/c/d")), "/a b/c")).toBe(true);
    expect(hasMountsBelow(table(line("/a/b")), "/a/b")).toBe(true);
    expect(hasMountsBelow(table(line("/") + line("/a/bc")), "/a/b")).toBe(false);
  });

  test("counts as there when the table cannot be read, and as not there without one", () => {
    const failing = (code: string): typeof nodeFileSystem => ({
      ...nodeFileSystem,
      open: () => {
        throw Object.assign(new Error(code), { code });
      },
    });
    expect(hasMountsBelow(failing("EACCES"), "/a")).toBe(true);
    expect(hasMountsBelow(failing("ENOENT"), "/a")).toBe(false);
  });
});
