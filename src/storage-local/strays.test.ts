/** What a killed writer left goes at once; what a living one may be at stays. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { openLocalStorage } from "./open.js";
import { temporaryNames } from "./strays.js";

let dir: string;
let storage: Storage;
beforeEach(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-strays-"));
  storage = await openLocalStorage({ dir });
});
afterEach(async () => {
  await storage.close();
  fs.rmSync(dir, { recursive: true });
});

const inTmp = (): readonly string[] => fs.readdirSync(path.join(dir, "tmp"));
const leave = (name: string): void => {
  fs.writeFileSync(path.join(dir, "tmp", name), "half");
};

it.skipIf(process.platform !== "linux")(
  "a file of a process that is gone is removed, of one that runs it is not",
  async () => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
    await once(child, "spawn");
    const name = temporaryNames(nodeFileSystem, child.pid ?? -1)();
    leave(name);
    expect(await storage.disk?.removeStrays()).toBe(0);
    expect(inTmp()).toEqual([name]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await storage.disk?.removeStrays()).toBe(1);
    expect(inTmp()).toEqual([]);
  },
);

it.skipIf(process.platform !== "linux")("a pid that another process has now does not keep a file", async () => {
  const own = temporaryNames(nodeFileSystem, process.pid)();
  const [prefix = "", pid = "", start = "", rest = ""] = own.split(
    /-(?=\d+-\d+-)|(?<=-\d+)-(?=\d+-)|-(?=[0-9a-f]{18}$)/,
  );
  const reused = [prefix, pid, String(Number(start) + 1), rest].join("-");
  leave(own);
  leave(reused);
  await storage.disk?.removeStrays();
  expect(inTmp()).toEqual([own]);
});

it("a file of another machine, boot or container is left to its age", async () => {
  leave(".tmp-0123456789abcdef-1-1-aa");
  leave(".tmp-aa");
  await storage.disk?.removeStrays();
  expect(inTmp()).toHaveLength(2);
  const longAgo = Date.now() / 1000 - 25 * 60 * 60;
  for (const name of inTmp()) fs.utimesSync(path.join(dir, "tmp", name), longAgo, longAgo);
  expect(await storage.disk?.removeStrays()).toBe(2);
});

it("where the system says nothing of processes, files are written and swept all the same", async () => {
  const blind = interceptFileSystem(nodeFileSystem, ({ args: [file] }) => {
    if (String(file).startsWith("/proc/")) throw Object.assign(new Error("hidden"), { code: "EACCES" });
  });
  await using other = await openLocalStorage({ dir, fileSystem: blind });
  expect(await other.blobs.put("a", [Buffer.from("a")])).toBe(true);
  leave(temporaryNames(nodeFileSystem, 1)());
  expect(await other.disk?.removeStrays()).toBe(0);
});
