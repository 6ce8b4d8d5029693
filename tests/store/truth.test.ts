/** Trees at the limits of what a file system takes: deep, wide, mounted, linked, with holes. What is there is what is captured. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem, parseWorkspacePath } from "../../src/core/index.js";
import type { SnapshotRef, WorkspacePath } from "../../src/core/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { WorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { bytesOf } from "./awkward-trees.js";
import { listing } from "./listing.js";
import { Volume } from "./volume.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const settled = (): number => Date.now() + 60_000;

async function restored(store: WorkspaceStore, ref: SnapshotRef, place: Playground): Promise<readonly string[]> {
  const dest = fs.mkdtempSync(path.join(place.dir, "out-"));
  await store.materialize(await store.open(ref), dest);
  return listing(dest);
}

async function changed(store: WorkspaceStore, from: SnapshotRef, to: SnapshotRef): Promise<WorkspacePath[]> {
  const paths: WorkspacePath[] = [];
  for await (const change of store.diff(await store.open(from), await store.open(to))) paths.push(change.path);
  return paths;
}

/** Calls `visit` with a path to each directory of a chain that is deeper than any path is long, made on the way. */
function descend(root: string, names: readonly string[], visit: (here: string, depth: number) => void): void {
  const { O_RDONLY, O_DIRECTORY } = fs.constants;
  let fd = fs.openSync(root, O_RDONLY | O_DIRECTORY);
  names.forEach((name, depth) => {
    const below = `/proc/self/fd/${fd}/${name}`;
    fs.mkdirSync(below, { recursive: true });
    const next = fs.openSync(below, O_RDONLY | O_DIRECTORY);
    fs.closeSync(fd);
    fd = next;
    visit(`/proc/self/fd/${fd}`, depth);
  });
  fs.closeSync(fd);
}

describe("a tree a thousand directories deep, its paths longer than any call takes", () => {
  const depth = 1000;
  const names = Array.from({ length: depth }, (_, i) => `${i}-`.padEnd(i % 100 === 0 ? 255 : 20, "d"));

  it("is captured, captured again by what changed, compared, verified and restored", async () => {
    await using place = new Playground("root", { quick: true });
    // What the ordinary removal of directories cannot.
    await using _ = { [Symbol.asyncDispose]: async () => void execFileSync("rm", ["-rf", place.dir]) };
    descend(place.root, names, (here, at) => {
      if (at % 250 === 249) fs.writeFileSync(`${here}/f`, `at ${at}`);
      if (at === depth - 1) fs.symlinkSync("f", `${here}/l`);
    });
    const deepest = parseWorkspacePath(`${names.join("/")}/f`);
    expect(Buffer.byteLength(deepest)).toBeGreaterThan(20_000);
    const store = createWorkspaceStore(await place.storage(), { now: settled });
    const first = await store.capture({ root: place.root });
    expect(first).toMatchObject({ files: 4, completeness: "complete" });
    expect(await restored(store, first.ref, place)).toEqual(listing(place.root));
    expect(await store.capture({ root: place.root })).toMatchObject({ ref: first.ref, bytesRead: 0, bytesStored: 0 });

    descend(place.root, names, (here, at) => {
      if (at === depth - 1) fs.appendFileSync(`${here}/f`, " and more");
    });
    const second = await store.capture({ root: place.root });
    expect(second.bytesRead).toBeLessThan(100);
    expect(await changed(store, first.ref, second.ref)).toEqual([deepest]);
    expect(await restored(store, second.ref, place)).toEqual(listing(place.root));
    expect(
      (await createWorkspaceStore(await place.storage()).verify({ refs: [first.ref, second.ref] })).damaged,
    ).toEqual([]);
  });
});

describe("a directory with very many entries", () => {
  const count = soak ? 100_000 : 5_000;

  it("is captured, captured again by what changed, and restored", { timeout: 600_000 }, async () => {
    await using place = new Playground("root", { quick: true });
    const dir = place.at("wide");
    fs.mkdirSync(dir);
    // Numbers without padding: their order as bytes is another than the order they are made in.
    for (let i = 0; i < count; i++) fs.writeFileSync(`${dir}/${i}`, i % 7 === 0 ? "" : `entry ${i % 1000}`);
    const store = createWorkspaceStore(await place.storage(), { now: settled });
    const first = await store.capture({ root: place.root });
    expect(first.files).toBe(count);
    const list = await first.tree.list(parseWorkspacePath("wide"));
    expect(list.map(([name]) => name)).toEqual(Array.from({ length: count }, (_, i) => String(i)).sort());
    expect(await restored(store, first.ref, place)).toEqual(listing(place.root));

    fs.rmSync(`${dir}/1`);
    fs.writeFileSync(`${dir}/10000x`, "added");
    fs.writeFileSync(`${dir}/4999`, "edited");
    const second = await store.capture({ root: place.root });
    expect(await changed(store, first.ref, second.ref)).toEqual(["wide/1", "wide/10000x", "wide/4999"]);
    expect(second.bytesRead).toBeLessThan(30);
    expect((await createWorkspaceStore(createMemoryStorage()).capture({ root: place.root })).ref).toBe(second.ref);
  });
});

describe("another file system mounted in the tree", () => {
  it("is a name in the capture and nothing of it is read; unmounted, what it hid is captured", async (context) => {
    await using place = new Playground("root", { quick: true });
    using volume = Volume.mount(1);
    if (volume === undefined) return context.skip("this machine does not let the test mount a tmpfs");
    place.write({ "mounted/hidden": "hidden", beside: "b" });
    place.write({ inside: "INSIDE" }, volume.path);
    execFileSync("mount", ["--bind", volume.path, place.at("mounted")]);
    const touched: string[] = [];
    const watching = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      if (/inside|hidden/.test(String(args[0]))) touched.push(`${name} ${String(args[0])}`);
    });
    const storage = createMemoryStorage();
    try {
      for (const fileSystem of [nodeFileSystem, watching]) {
        const captured = await createWorkspaceStore(storage, { fileSystem }).capture({ root: place.root });
        expect(captured).toMatchObject({
          files: 1,
          omitted: [{ path: "mounted", class: "mount" }],
          completeness: "complete",
        });
      }
      expect(touched).toEqual([]);
    } finally {
      execFileSync("umount", ["--lazy", place.at("mounted")]);
    }
    expect(await createWorkspaceStore(storage).capture({ root: place.root })).toMatchObject({ files: 2, omitted: [] });
  });
});

describe("directories and files that the user may not read", () => {
  it("are named, and the rest is captured; strict refuses and names them (U14)", async (context) => {
    if (process.getuid?.() !== 0) return context.skip("only root can run a process as somebody else");
    await using place = new Playground("root", { quick: true });
    place.write({ open: "o", "locked/x": "x", "listed/y": "y", "entered/z": "z", closed: "c", "fine/f": "f" });
    fs.chmodSync(place.at("closed"), 0o000);
    fs.chmodSync(place.at("locked"), 0o000);
    // Names can be listed but not looked at; can be looked at but not listed.
    fs.chmodSync(place.at("listed"), 0o444);
    fs.chmodSync(place.at("entered"), 0o111);
    execFileSync("chown", ["-R", "65534:65534", place.dir]);
    const child = startProcess("tests/processes/unprivileged-capture.ts", [place.root, place.stateDir, "65534"]);
    // Of a directory that can only be listed, what can be said is that of its entries nothing is known, or of itself.
    const told = JSON.parse((await child.line()).replaceAll("listed/y", "listed")) as Readonly<Record<string, unknown>>;
    expect(await child.ended).toMatchObject({ code: 0, stderr: "" });
    expect(told).toEqual({
      completeness: "partial",
      files: 2,
      omitted: [
        { path: "closed", class: "unreadable" },
        { path: "entered", class: "unreadable" },
        { path: "listed", class: "unreadable" },
        { path: "locked", class: "unreadable" },
      ],
      strict: ["capture.incomplete", "closed", "entered", "listed", "locked"],
    });
  });
});

describe("hard links", () => {
  it("are files of their own in the tree, stored once, and an edit through one name is seen under all", async () => {
    await using place = new Playground("root", { quick: true });
    place.write({ "a/one": bytesOf({ size: 400_000, seed: 1, fill: "random" }), "b/other": "o" });
    fs.linkSync(place.at("a/one"), place.at("a/two"));
    fs.linkSync(place.at("a/one"), place.at("b/three"));
    const store = createWorkspaceStore(await place.storage(), { now: settled });
    const first = await store.capture({ root: place.root });
    expect(first.files).toBe(4);
    expect(first.bytesStored).toBeLessThan(500_000);
    expect(await restored(store, first.ref, place)).toEqual(listing(place.root));

    fs.appendFileSync(place.at("a/two"), "more");
    const second = await store.capture({ root: place.root });
    expect(await changed(store, first.ref, second.ref)).toEqual(["a/one", "a/two", "b/three"]);
    expect(await restored(store, second.ref, place)).toEqual(listing(place.root));
    fs.rmSync(place.at("a/one"));
    const third = await store.capture({ root: place.root });
    expect(await changed(store, second.ref, third.ref)).toEqual(["a/one"]);
  });
});

describe("files with holes", () => {
  it("are captured by what they read as, cost next to nothing, and come back equal", async () => {
    await using place = new Playground("root", { quick: true });
    const sparse = (name: string, size: number, data: readonly (readonly [at: number, text: string])[]): void => {
      const fd = fs.openSync(place.at(name), "w");
      fs.ftruncateSync(fd, size);
      for (const [at, text] of data) fs.writeSync(fd, text, at);
      fs.closeSync(fd);
    };
    const MiB = 1024 * 1024;
    sparse("only-a-hole", 9 * MiB + 5, []);
    sparse("islands", 24 * MiB, [
      [0, "first"],
      [7 * MiB - 2, "across"],
      [24 * MiB - 4, "last"],
    ]);
    sparse("small", 100_000, [[50_000, "middle"]]);
    const store = createWorkspaceStore(await place.storage(), { now: settled });
    const { ref, bytesStored } = await store.capture({ root: place.root });
    expect(bytesStored).toBeLessThan(100_000);
    expect(await restored(store, ref, place)).toEqual(listing(place.root));
  });
});
