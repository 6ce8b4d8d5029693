/**
 * The commit that git's HEAD names, read from files: git is never run (U12). It is only ever shown ("HEAD moved since"),
 * so anything unusual is simply unknown.
 */
import path from "node:path";
import type { FileSystem } from "../core/index.js";
import { readSmallFile } from "./small-file.js";

const commit = /^[0-9a-f]{40,64}$/;

export function readGitHead(fileSystem: FileSystem, root: string): string | undefined {
  try {
    const gitDir = findGitDir(fileSystem, root);
    const head = readSmallFile(fileSystem, path.join(gitDir, "HEAD")).trim();
    if (commit.test(head)) return head;
    const ref = /^ref: (refs\/[^\0]+)$/.exec(head)?.[1];
    if (ref === undefined || ref.split("/").includes("..")) return undefined;
    const common = commonDir(fileSystem, gitDir);
    return looseRef(fileSystem, common, ref) ?? packedRef(fileSystem, common, ref);
  } catch {
    return undefined;
  }
}

/** `.git` itself, or the directory a `.git` file of a worktree or submodule names. */
function findGitDir(fileSystem: FileSystem, root: string): string {
  const git = path.join(root, ".git");
  if (fileSystem.stat(git).isDirectory()) return git;
  const named = /^gitdir: (.+)$/m.exec(readSmallFile(fileSystem, git))?.[1];
  if (named === undefined) throw new Error("no git directory");
  return path.resolve(root, named);
}

function commonDir(fileSystem: FileSystem, gitDir: string): string {
  try {
    return path.resolve(gitDir, readSmallFile(fileSystem, path.join(gitDir, "commondir")).trim());
  } catch {
    return gitDir;
  }
}

function looseRef(fileSystem: FileSystem, common: string, ref: string): string | undefined {
  try {
    const value = readSmallFile(fileSystem, path.join(common, ref)).trim();
    return commit.test(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function packedRef(fileSystem: FileSystem, common: string, ref: string): string | undefined {
  const line = readSmallFile(fileSystem, path.join(common, "packed-refs"))
    .split("\n")
    .find((each) => each.endsWith(` ${ref}`));
  const value = line?.split(" ")[0];
  return value !== undefined && commit.test(value) ? value : undefined;
}
