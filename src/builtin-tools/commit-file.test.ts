/** The commit broken on purpose: whichever call fails, the file is the old one or the new one and nothing is left beside it. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { Directory, interceptFileSystem, nodeFileSystem, parseWorkspacePath } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { commitFile } from "./commit-file.js";
import { readPresent } from "./present-file.js";
import { ToolsOnDisk } from "./testing/tools-on-disk.js";

const path = parseWorkspacePath("dir/f");

async function commit(disk: ToolsOnDisk, fileSystem: FileSystem, bytes = "new bytes"): Promise<boolean> {
  using permit = await disk.coordinator.acquire({ operation: "path-mutation", paths: [path] });
  using top = Directory.open(nodeFileSystem, disk.root);
  const expected = readPresent(nodeFileSystem, top, path);
  using watched = Directory.open(fileSystem, disk.root);
  const scope = { fileSystem, top: watched, path, permit, signal: new AbortController().signal };
  return await commitFile(scope, Buffer.from(bytes), expected);
}

const full = (): Error => Object.assign(new Error("ENOSPC: /secret/place"), { code: "ENOSPC" });

/** Fails the n-th call that changes something, but for what only tidies up. */
function failing(n: number): { readonly fileSystem: FileSystem; fired(): string | undefined } {
  let count = 0;
  let fired: string | undefined;
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, effect }) => {
    if (!effect || name === "unlink" || fired !== undefined || count++ !== n) return;
    fired = name;
    throw full();
  });
  return { fileSystem, fired: () => fired };
}

it.each([
  ["an absent file", undefined, 1],
  ["a file", "old", 1],
  ["a file of several names", "old and longer than the new", 2],
])("a call that fails leaves %s as it was, or as it was to be", async (_, old, names) => {
  const fired: string[] = [];
  for (let n = 0; ; n++) {
    using disk = new ToolsOnDisk();
    fs.mkdirSync(disk.at("dir"));
    if (old !== undefined) disk.write("dir/f", old);
    if (names === 2) fs.linkSync(disk.at("dir/f"), disk.at("other"));
    const faults = failing(n);
    const outcome = await commit(disk, faults.fileSystem).catch((error: unknown) => error);
    const what = faults.fired();
    if (what === undefined) {
      expect(outcome).toBe(true);
      expect(disk.read("dir/f")).toBe("new bytes");
      break;
    }
    fired.push(what);
    // An owner, or a second name of what is replaced, that cannot be had is no failure.
    if (outcome !== true) {
      expect(outcome).toMatchObject({ code: "file.failed", retryable: true });
      expect((outcome as Error).message).toBe("Cannot write dir/f: the disk is full");
    }
    const now = fs.existsSync(disk.at("dir/f")) ? disk.read("dir/f") : undefined;
    expect([old, "new bytes"]).toContain(now);
    expect(fs.readdirSync(disk.at("dir"))).toEqual(now === undefined ? [] : ["f"]);
  }
  expect(fired).toEqual(
    names === 2
      ? ["open", "write", "ftruncate", "fsync"]
      : ["open", "write", "fchmod", "fsyncLater", "link", ...(old === undefined ? [] : ["rename"]), "fsync"],
  );
});

it("what was changed since it was read is not written over, up to the step before the rename", async () => {
  using disk = new ToolsOnDisk();
  disk.write("dir/f", "old");
  const meanwhile = interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (name === "fsyncLater") fs.writeFileSync(disk.at("dir/f"), "theirs");
  });
  expect(await commit(disk, meanwhile)).toBe(false);
  expect(disk.read("dir/f")).toBe("theirs");
  fs.rmSync(disk.at("dir/f"));
  const appears = interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (name === "link") fs.writeFileSync(disk.at("dir/f"), "theirs again");
  });
  expect(await commit(disk, appears)).toBe(false);
  expect(disk.read("dir/f")).toBe("theirs again");
  expect(fs.readdirSync(disk.at("dir"))).toEqual(["f"]);
});

describe("what another program does to the file while the bytes are staged is taken over by the next attempt:", () => {
  /** Commits as the tools do: once more with the file as it is then. */
  async function commitTwice(disk: ToolsOnDisk, meanwhile: () => void): Promise<void> {
    let once = false;
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name !== "fsyncLater" || once) return;
      once = true;
      meanwhile();
    });
    expect(await commit(disk, fileSystem)).toBe(false);
    expect(disk.read("dir/f")).toBe("old");
    expect(await commit(disk, fileSystem)).toBe(true);
    expect(disk.read("dir/f")).toBe("new bytes");
  }

  it("its permissions", async () => {
    using disk = new ToolsOnDisk();
    disk.write("dir/f", "old");
    await commitTwice(disk, () => fs.chmodSync(disk.at("dir/f"), 0o755));
    expect(fs.statSync(disk.at("dir/f")).mode & 0o777).toBe(0o755);
    expect(fs.readdirSync(disk.at("dir"))).toEqual(["f"]);
  });

  it("a second name, which changes with the first", async () => {
    using disk = new ToolsOnDisk();
    disk.write("dir/f", "old");
    await commitTwice(disk, () => fs.linkSync(disk.at("dir/f"), disk.at("other")));
    expect(disk.read("other")).toBe("new bytes");
    expect(fs.statSync(disk.at("dir/f")).ino).toBe(fs.statSync(disk.at("other")).ino);
    expect(fs.readdirSync(disk.at("dir"))).toEqual(["f"]);
  });
});

it("a permit that is revoked while the bytes are staged stops the commit (C5, C6)", async () => {
  using disk = new ToolsOnDisk();
  disk.write("dir/f", "old");
  using permit = await disk.coordinator.acquire({ operation: "path-mutation", paths: [path] });
  using top = Directory.open(nodeFileSystem, disk.root);
  const expected = readPresent(nodeFileSystem, top, path);
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (name === "fsyncLater") disk.coordinator.revoke(permit);
  });
  const scope = { fileSystem, top, path, permit, signal: new AbortController().signal };
  await expect(commitFile(scope, Buffer.from("new"), expected)).rejects.toMatchObject({ code: "coordinator.revoked" });
  expect(disk.read("dir/f")).toBe("old");
  expect(fs.readdirSync(disk.at("dir"))).toEqual(["f"]);
});

/** Writes to the file, as another program would, when the named call is about to be made. */
function disturbed(call: "rename" | "link", write: () => void): FileSystem {
  let once = false;
  return interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (name !== call || once) return;
    once = true;
    write();
  });
}

it("C10: what another program writes into the file between the last check and the rename is kept, and told", async () => {
  using disk = new ToolsOnDisk();
  disk.write("dir/f", "old");
  const fileSystem = disturbed("rename", () => disk.write("dir/f", "theirs"));
  const refused = await commit(disk, fileSystem).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "file.written_meanwhile", details: { path: "dir/f" } });
  const { kept = "" } = (refused as { details: { kept?: string } }).details;
  expect([disk.read("dir/f"), disk.read(kept)]).toEqual(["new bytes", "theirs"]);
});

it("C10: a program that had the file open and writes after the rename is noticed too", async () => {
  using disk = new ToolsOnDisk();
  disk.write("dir/f", "old");
  const fd = fs.openSync(disk.at("dir/f"), "r+");
  let [renamed, written] = [false, false];
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (renamed && !written) written = fs.writeSync(fd, "THEIRS") > 0;
    renamed ||= name === "rename";
  });
  await expect(commit(disk, fileSystem)).rejects.toMatchObject({ code: "file.written_meanwhile" });
  fs.closeSync(fd);
  expect(fs.readdirSync(disk.at("dir")).map((name) => disk.read(`dir/${name}`))).toEqual(
    expect.arrayContaining(["new bytes", "THEIRS"]),
  );
});
