/**
 * A model that tries every way out of the root. Whatever it names, what lies outside is neither read nor written by a file
 * tool, nothing waits for a device or a pipe, and it is told so in words that name its own path.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { calls, finish } from "../../src/loop/testing/models.js";
import { HostileScene } from "./hostile-scene.js";

const scene = new HostileScene();
const { place, outside } = scene;
let socket: net.Server;

beforeAll(async () => {
  place.write({ "dir/inner.txt": "inner\n", ".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n" });
  for (const [name, target] of [
    ["out-file", path.join(outside, "secret")],
    ["out-dir", outside],
    ["out-relative", "../outside/secret"],
    ["out-root", "/"],
    ["out-dangling", path.join(outside, "nothing-yet")],
    ["out-chain", "out-dir/deep/secret"],
    ["loop-a", "loop-b"],
    ["loop-b", "loop-a"],
    ["to-fd", "/proc/self/fd/0"],
    ["to-zero", "/dev/zero"],
    ["in-link", "a.txt"],
    ["git-link", ".git"],
  ] as const) {
    fs.symlinkSync(target, place.at(name));
  }
  execFileSync("mkfifo", [place.at("pipe")]);
  fs.writeFileSync(Buffer.concat([Buffer.from(`${place.root}/caf`), Buffer.from([0xe9])]), "latin-1 name\n");
  fs.writeFileSync(place.at("line\nend\u001b[31m"), "odd name\n");
  socket = net.createServer();
  await new Promise<void>((resolve) => socket.listen(place.at("socket"), resolve));
});
afterAll(async () => {
  await new Promise((resolve) => socket.close(resolve));
  await scene[Symbol.asyncDispose]();
});

const names: readonly (readonly [string, string])[] = [
  ["an absolute path", path.join(outside, "secret")],
  ["a system file", "/etc/passwd"],
  ["the way up", "../outside/secret"],
  ["the way down and up", "dir/../../outside/secret"],
  ["the way up by its full name", `${place.root}/../outside/secret`],
  ["a root's name and more", `${place.root}-other/secret`],
  ["a link to a file", "out-file"],
  ["a relative link", "out-relative"],
  ["a link to a directory", "out-dir/secret"],
  ["a link through a link", "out-chain"],
  ["a link to the file system's root", "out-root/etc/passwd"],
  ["a link to nothing", "out-dangling"],
  ["links in a circle", "loop-a"],
  ["a descriptor of ours", "/proc/self/fd/0"],
  ["a link to a descriptor", "to-fd"],
  ["our environment", "/proc/self/environ"],
  ["the working directory of the process", "/proc/self/cwd/package.json"],
  ["a device", "/dev/zero"],
  ["the standard input", "/dev/stdin"],
  ["a link to a device", "to-zero"],
  ["a pipe nobody writes to", "pipe"],
  ["a socket", "socket"],
  ["a directory", "dir"],
  ["the root", "."],
  ["a file as a directory", "a.txt/b"],
  ["a path of 5000 bytes", "x".repeat(5_000)],
  ["a path of 5000 bytes, in pieces", "d/".repeat(2_500)],
  ["an empty path", ""],
  ["a NUL", "a.txt\0.png"],
];

it.each(names)("%s gets no tool to what lies outside, or is no file, and says so in our words", async (_, name) => {
  const before = place.tree();
  const { told, result } = await scene.attackCalls(
    calls("Read", { file_path: name }),
    calls("Write", { file_path: name, content: "stolen\n" }),
    calls("Edit", { file_path: name, old_string: "for", new_string: "of" }),
    calls("List", { path: name }),
    calls("Glob", { pattern: "*", path: name }),
    calls("Grep", { pattern: "f.r models|roo.:x", path: name }),
  );
  expect(result).toMatchObject({ status: "done" });
  expect(told.slice(0, 3).map(({ tool, type }) => `${tool} ${type}`)).toEqual([
    ...["Read error-text", "Write error-text", "Edit error-text"],
  ]);
  for (const { text } of told) {
    expect(text).not.toMatch(/not for models|root:x|^secret/m);
    // In our words, and not the system's.
    expect(text).not.toMatch(/undefined|\bE[A-Z]{4,}\b/);
    expect(text.length).toBeLessThan(12_000);
  }
  expect(place.tree()).toEqual(before);
});

it.each([".git/config", ".git/hooks/pre-commit", "dir/.git", ".GIT/config", `./dir/../.git/new`, "git-link/config"])(
  "%s cannot be written by a file tool: nothing there could be undone, and it could run as a command",
  async (name) => {
    const before = place.tree();
    const { told } = await scene.attackCalls(
      calls("Write", { file_path: name, content: "[core]\n\tfsmonitor = touch /tmp/x\n" }),
      calls("Edit", { file_path: name, old_string: "[core]", new_string: "[x]" }),
    );
    expect(told.map(({ type }) => type)).toEqual(["error-text", "error-text"]);
    for (const { text } of told) expect(text).toMatch(/lies in \.git, where a change could not be taken back/);
    expect(place.tree()).toEqual(before);
  },
);

it("searches follow no link out of the root", async () => {
  const { told } = await scene.attackCalls(
    calls("Grep", { pattern: "f.r models" }),
    calls("Glob", { pattern: "**/secret" }),
    calls("List", {}),
  );
  expect(told[0]?.text).not.toMatch(/not for models/);
  expect(told[1]?.text).not.toMatch(/secret$/m);
  expect(told[2]?.text).toContain("out-dir -> ");
});

it("names that are no text, or hold escape codes, are shown without harm and can be read back", async () => {
  const { told } = await scene.attackCalls(calls("List", {}), calls("Glob", { pattern: "*" }));
  for (const { text } of told) {
    expect(text).not.toContain("\u001b");
    expect(text).toContain('"line\\nend\\u001b[31m"');
  }
  const read = await scene.call("Read", { file_path: "line\nend\u001b[31m" });
  expect(read.told[0]?.text).toContain("odd name");
});

it("a link inside the root is written through, and stays a link", async () => {
  const { told } = await scene.attack([
    [calls("Read", { file_path: "in-link" }), finish("tool-calls")],
    [calls("Edit", { file_path: "in-link", old_string: "two", new_string: "deux" }), finish("tool-calls")],
  ]);
  expect(told.map(({ type }) => type)).toEqual(["text", "text"]);
  expect(place.read("a.txt")).toBe("one\ndeux\n");
  expect(fs.lstatSync(place.at("in-link")).isSymbolicLink()).toBe(true);
});

it("a link that a command puts in the way in the same step, again and again, leads no write outside", async () => {
  const swap = `mkdir -p real; i=0; while [ $i -lt 40 ]; do rm -rf way; ln -s ${outside} way; rm way; mkdir way; i=$((i+1)); done`;
  const writes = Array.from({ length: 12 }, (_, i) =>
    calls("Write", { file_path: `way/planted-${i}`, content: "planted\n" }, `w${i}`),
  );
  const { told } = await scene.attackCalls(
    ...writes.slice(0, 6),
    calls("Bash", { command: swap }, "b"),
    ...writes.slice(6),
  );
  expect(told).toHaveLength(13);
  expect(fs.readdirSync(outside).sort()).toEqual(["deep", "secret"]);
});

it("a directory that a process outside swaps for a link while files are written leads no write outside", async () => {
  let swapping = true;
  const way = place.at("swapped");
  // As fast as this process can, between any two steps of the tools.
  const swap = (): void => {
    if (!swapping) return;
    fs.rmSync(way, { recursive: true, force: true });
    fs.symlinkSync(outside, way);
    setImmediate(() => {
      fs.rmSync(way, { force: true });
      fs.mkdirSync(way);
      setImmediate(swap);
    });
  };
  swap();
  try {
    await scene.turn([
      [
        ...Array.from({ length: 40 }, (_, i) =>
          calls("Write", { file_path: `swapped/deep/planted-${i}`, content: "planted\n" }, `s${i}`),
        ),
        finish("tool-calls"),
      ],
    ]);
  } finally {
    swapping = false;
  }
  expect(fs.readdirSync(outside).sort()).toEqual(["deep", "secret"]);
  expect(fs.readdirSync(path.join(outside, "deep"))).toEqual(["secret"]);
  await scene.proveUsable();
});

it("all that stays in a conversation which another session goes on with", () => scene.proveResumable());
