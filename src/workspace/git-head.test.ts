import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import { readGitHead } from "./git-head.js";

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const git = (cwd: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", ...args], {
    cwd,
    encoding: "utf8",
  }).trim();

function repository(name: string): string {
  const root = path.join(dir, name);
  fs.mkdirSync(root);
  git(root, "init", "-q");
  git(root, "commit", "-q", "--allow-empty", "-m", "one");
  return root;
}

describe("readGitHead", () => {
  it("agrees with git for a branch, a packed ref, a detached HEAD and a linked worktree", () => {
    const root = repository("r");
    const head = git(root, "rev-parse", "HEAD");
    expect(readGitHead(nodeFileSystem, root)).toBe(head);

    git(root, "pack-refs", "--all");
    expect(fs.existsSync(path.join(root, ".git/refs/heads/main"))).toBe(false);
    expect(readGitHead(nodeFileSystem, root)).toBe(head);

    const tree = path.join(dir, "tree");
    git(root, "worktree", "add", "-q", "-b", "side", tree);
    git(tree, "commit", "-q", "--allow-empty", "-m", "two");
    expect(readGitHead(nodeFileSystem, tree)).toBe(git(tree, "rev-parse", "HEAD"));

    git(root, "checkout", "-q", "--detach");
    expect(readGitHead(nodeFileSystem, root)).toBe(head);
  });

  it("knows nothing of a directory that is no repository, and of one without a commit", () => {
    expect(readGitHead(nodeFileSystem, dir)).toBeUndefined();
    const empty = path.join(dir, "empty");
    fs.mkdirSync(empty);
    git(empty, "init", "-q");
    expect(readGitHead(nodeFileSystem, empty)).toBeUndefined();
  });

  it("does not follow a forged ref out of the repository, and never blocks on a fifo", () => {
    const root = repository("forged");
    fs.writeFileSync(path.join(dir, "secret"), "0".repeat(40));
    fs.writeFileSync(path.join(root, ".git/HEAD"), "ref: refs/../../../secret\n");
    expect(readGitHead(nodeFileSystem, root)).toBeUndefined();

    fs.rmSync(path.join(root, ".git/HEAD"));
    execFileSync("mkfifo", [path.join(root, ".git/HEAD")]);
    expect(readGitHead(nodeFileSystem, root)).toBeUndefined();
  });
});
