/**
 * Damage of every blob of a small store, byte by byte: flipped, cut at each length, doubled, emptied, taken for another. Every
 * reader afterwards, and every capture, either gives the bytes that were captured or an error that says what is wrong.
 * Nothing else is an answer: no other bytes, no crash, no memory beyond what the store holds.
 */
import { hash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import type { SnapshotRef } from "../../src/core/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import type { Storage } from "../../src/storage/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { WorkspaceStore } from "../../src/workspace-store/index.js";
import { encodeIndex, parsePack } from "../../src/workspace-store/pack-codec.js";
import { Playground } from "../playground.js";
import { listing } from "./listing.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";

let place: Playground;
let ref: SnapshotRef;
let lines: readonly string[];
/** The sound store: every blob by its key. */
const sound = new Map<string, Buffer>();

beforeEach(async () => {
  place = new Playground("root", { quick: true });
  // Compressible and not, in a block and beside one another, in two directories; few bytes, since each one is tried.
  place.write({ a: "aaaaaaaa", "d/b": "b".repeat(300), "d/c": "" });
  fs.chmodSync(place.at("d/b"), 0o755);
  fs.symlinkSync("../a", place.at("d/l"));
  const storage = createMemoryStorage();
  ({ ref } = await createWorkspaceStore(storage).capture({ root: place.root, pin: { owner: "o", id: "i" } }));
  lines = listing(place.root);
  sound.clear();
  for await (const { key } of storage.blobs.list("")) sound.set(key, Buffer.from(await storage.blobs.get(key)));
});
afterEach(async () => {
  await place[Symbol.asyncDispose]();
});

/** A store like the sound one but for these blobs; undefined is an absent one. */
async function storeWith(changed: Readonly<Record<string, Buffer | undefined>>): Promise<Storage> {
  const storage = createMemoryStorage();
  for (const [key, bytes] of sound) {
    const there = key in changed ? changed[key] : bytes;
    if (there !== undefined) await storage.blobs.put(key, [there]);
  }
  return storage;
}

const open = (storage: Storage): WorkspaceStore => createWorkspaceStore(storage);

/** Everything a reader asks; `"as captured"`, or the code of the typed error. Other bytes than the captured ones throw. */
async function readBack(storage: Storage): Promise<string> {
  const dest = path.join(place.dir, "dest");
  try {
    const store = open(storage);
    await store.materialize(await store.open(ref), dest);
  } catch (error) {
    if (!isLooprigError(error)) throw error;
    // What could not be read whole is not there at all.
    expect(fs.existsSync(dest)).toBe(false);
    return error.code;
  }
  expect(listing(dest)).toEqual(lines);
  fs.rmSync(dest, { recursive: true });
  return "as captured";
}

const damageCodes = /^(snapshot\.(object_damaged|object_missing|unknown)|storage\.unsupported_version)$/;

/** Every damage is read; in the quick form verifiers are asked of those that show, and captures of some. */
const everyWhich = soak ? 1 : 6;
let examined = 0;

/** Damages one blob and looks at the store as a reader, as a verifier and as the next capture. */
async function examine(key: string, bytes: Buffer | undefined, told: string): Promise<string> {
  const damaged = { [key]: bytes };
  const answer = await readBack(await storeWith(damaged));
  if (answer !== "as captured") expect(answer, told).toMatch(damageCodes);

  examined++;
  if (answer === "as captured" && examined % everyWhich > 0) return answer;
  const verified = await open(await storeWith(damaged))
    .verify({ refs: [ref] })
    .catch((error: unknown) => error);
  if (isLooprigError(verified)) expect(verified.code, told).toMatch(damageCodes);
  else {
    const { damaged: found } = verified as Awaited<ReturnType<WorkspaceStore["verify"]>>;
    // Whatever a reader does not get is in the report.
    expect(found.length > 0, `${told}: a reader got "${answer}"`).toBe(answer !== "as captured");
  }

  // The files are still there, so the next capture makes good what is gone, or says why it cannot.
  if (examined % everyWhich > 0) return answer;
  const storage = await storeWith(damaged);
  const captured = await open(storage)
    .capture({ root: place.root })
    .catch((error: unknown) => error);
  if (isLooprigError(captured)) expect(captured.code, told).toMatch(damageCodes);
  else expect((captured as { readonly ref: string }).ref, told).toBe(ref);
  return answer;
}

const blobsOf = (prefix: string): readonly (readonly [key: string, bytes: Buffer])[] => {
  const found = [...sound].filter(([key]) => key.startsWith(prefix));
  expect(found.length, `blobs below "${prefix}"`).toBeGreaterThan(0);
  return found;
};

function flipped(bytes: Buffer, at: number, mask: number): Buffer {
  const bad = Buffer.from(bytes);
  bad[at] = (bad[at] ?? 0) ^ mask;
  return bad;
}
const masks = soak ? [1, 2, 4, 8, 16, 32, 64, 128, 255] : [0x10];

/** A pack so small has no index; with one it is what any larger one is, of fewer bytes to try. */
function giveIndexes(): void {
  for (const [key, bytes] of [...sound]) {
    if (key.startsWith("packs/")) sound.set(key.replace("packs/", "index/"), encodeIndex(parsePack(bytes)));
  }
}

describe.each([
  ["packs/", "without an index"],
  ["packs/", "with one"],
  ["index/", "with one"],
])("each blob below %s, of packs %s", (prefix, indexed) => {
  beforeEach(() => {
    if (indexed === "with one") giveIndexes();
  });

  it("with any one byte another is found out, and never read as something else (G8)", async () => {
    for (const [key, bytes] of blobsOf(prefix)) {
      const answers = new Set<string>();
      for (let at = 0; at < bytes.length; at++) {
        for (const mask of masks) answers.add(await examine(key, flipped(bytes, at, mask), `${key} byte ${at}`));
      }
      // A pack is all there is of its objects; an index is made anew from its pack.
      if (prefix === "packs/") expect(answers).toContain("snapshot.object_damaged");
      else expect([...answers]).toEqual(["as captured"]);
    }
  });

  it("cut at any length, doubled, emptied, zeroed or gone is found out", async () => {
    for (const [key, bytes] of blobsOf(prefix)) {
      for (let length = 0; length < bytes.length; length += soak ? 1 : 4) {
        await examine(key, bytes.subarray(0, length), `${key} cut at ${length}`);
      }
      await examine(key, Buffer.concat([bytes, bytes]), `${key} doubled`);
      await examine(key, Buffer.concat([bytes, Buffer.alloc(1)]), `${key} with a byte more`);
      await examine(key, Buffer.alloc(bytes.length), `${key} zeroed`);
      await examine(key, undefined, `${key} gone`);
    }
  });
});

describe("an index that lies under a right digest", () => {
  beforeEach(giveIndexes);

  /** As a broken writer would leave it: the digest at the end is that of the bytes before it. */
  const resealed = (bytes: Buffer): Buffer =>
    Buffer.concat([bytes.subarray(0, -32), hash("sha256", bytes.subarray(0, -32), "buffer")]);

  it("never makes a reader give out other bytes, or take memory for lengths that are not there", async () => {
    for (const [key, bytes] of blobsOf("index/")) {
      for (let at = 0; at < bytes.length - 32; at++) {
        for (const mask of [...masks, 0xff]) {
          const answer = await readBack(await storeWith({ [key]: resealed(flipped(bytes, at, mask)) }));
          if (answer !== "as captured") expect(answer, `byte ${at}`).toMatch(damageCodes);
        }
      }
    }
  });
});

describe("blobs that stand for one another", () => {
  beforeEach(giveIndexes);

  it("are found out, whichever two they are", async () => {
    for (const [key] of [...blobsOf("packs/"), ...blobsOf("index/")]) {
      for (const [, bytes] of sound) await examine(key, bytes, `another blob as ${key}`);
    }
  });
});

describe("a pin", () => {
  const pins = (storage: Storage): Promise<unknown> => open(storage).pins();

  it("with any one byte another, cut, doubled or emptied is an error that names it, never an absent or another one (G2)", async () => {
    const expected = { code: "snapshot.pin_damaged", details: { owner: "o", id: "i" } };
    for (const [key, bytes] of blobsOf("roots/")) {
      const broken = [
        ...Array.from({ length: bytes.length }, (_, at) => masks.map((mask) => flipped(bytes, at, mask))).flat(),
        ...Array.from({ length: bytes.length }, (_, length) => bytes.subarray(0, length)),
        Buffer.concat([bytes, bytes]),
        Buffer.concat([bytes, Buffer.alloc(1)]),
        Buffer.alloc(bytes.length),
      ];
      for (const bad of broken) {
        const storage = await storeWith({ [key]: bad });
        await expect(pins(storage)).rejects.toMatchObject(expected);
        await expect(open(storage).verify()).rejects.toMatchObject(expected);
      }
    }
  });
});

describe("a stat index", () => {
  it("with any one byte another, cut, doubled or emptied never changes what a capture says (G3)", async () => {
    const spoolDir = path.join(place.dir, "spool");
    const storage = await storeWith({});
    const later = (): number => Date.now() + 60_000;
    const capture = async () => createWorkspaceStore(storage, { spoolDir, now: later }).capture({ root: place.root });
    await capture();
    const files = fs
      .readdirSync(spoolDir, { recursive: true, encoding: "utf8" })
      .map((name) => path.join(spoolDir, name))
      .filter((file) => fs.statSync(file).isFile());
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const bytes = fs.readFileSync(file);
      const broken = [
        ...Array.from({ length: bytes.length }, (_, at) => masks.map((mask) => flipped(bytes, at, mask))).flat(),
        ...Array.from({ length: bytes.length }, (_, length) => bytes.subarray(0, length)),
        Buffer.concat([bytes, bytes]),
        Buffer.alloc(bytes.length),
      ];
      for (const [i, bad] of broken.entries()) {
        // A file under one digest; the quick form tries every third damage of it.
        if (!soak && i % 3 > 0) continue;
        fs.writeFileSync(file, bad);
        expect(await capture()).toMatchObject({ ref, completeness: "complete", bytesStored: 0 });
      }
      fs.rmSync(file, { force: true });
      fs.mkdirSync(file);
      expect(await capture()).toMatchObject({ ref, bytesStored: 0 });
    }
  });
});
