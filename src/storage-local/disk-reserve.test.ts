/** The reserve of the disk, with a file system that says what it has left. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { openLocalStorage } from "./open.js";

const mebibyte = 1024 * 1024;
let dir: string;
let free: number;
const fileSystem: FileSystem = {
  ...nodeFileSystem,
  statfs: (at) => Object.assign(nodeFileSystem.statfs(at), { bsize: 1, bavail: free, blocks: 1024 * mebibyte }),
};
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-reserve-"));
  free = 1000 * mebibyte;
});
afterEach(() => fs.rmSync(dir, { recursive: true }));

const bytes = Buffer.alloc(1000);
const reserveFile = (): number | undefined => fs.statSync(path.join(dir, "reserve"), { throwIfNoEntry: false })?.size;

it("what is sparing is refused where it would touch the reserve; everything else is written", async () => {
  await using storage = await openLocalStorage({ dir, fileSystem, reserveBytes: 10 * mebibyte });
  free = 10 * mebibyte + 1000;
  expect(await storage.blobs.put("a", [bytes], { sparing: true })).toBe(true);
  free -= 1;
  await expect(storage.blobs.put("b", [bytes], { sparing: true })).rejects.toMatchObject({
    code: "storage.reserve",
    retryable: true,
    details: { path: fs.realpathSync(dir), free: 10 * mebibyte + 999, wanted: 10 * mebibyte + 1000 },
  });
  expect(await storage.blobs.put("b", [bytes])).toBe(true);
  // What is there already costs nothing.
  expect(await storage.blobs.put("b", [bytes], { sparing: true })).toBe(false);
});

it("is a part of the volume by default", async () => {
  await using storage = await openLocalStorage({ dir, fileSystem });
  free = 20 * mebibyte;
  await expect(storage.blobs.put("a", [bytes], { sparing: true })).rejects.toMatchObject({ code: "storage.reserve" });
  free = 30 * mebibyte;
  expect(await storage.blobs.put("a", [bytes], { sparing: true })).toBe(true);
});

it("the reserve file is there once something was captured, given up when the disk is full, and taken back", async () => {
  await using storage = await openLocalStorage({ dir, fileSystem });
  expect(reserveFile()).toBe(undefined);
  await storage.blobs.put("a", [bytes], { sparing: true });
  expect(reserveFile()).toBe(4 * mebibyte);
  await storage.disk?.withReserve(async () => expect(reserveFile()).toBe(4 * mebibyte));
  free = mebibyte;
  await expect(
    storage.disk?.withReserve(async () => {
      expect(reserveFile()).toBe(undefined);
      free = 3 * mebibyte;
      throw new Error("the work failed");
    }),
  ).rejects.toThrow("the work failed");
  expect(reserveFile()).toBe(3 * mebibyte);
});

it.each([-1, 1.5, Number.NaN])("a reserve of %d bytes is refused", async (reserveBytes) => {
  await expect(openLocalStorage({ dir, reserveBytes })).rejects.toMatchObject({ code: "option.invalid" });
});
