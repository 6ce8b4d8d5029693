/** Real repositories for the cases, made and asked by the git program, free of what this machine's git is configured to do. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** The environment in which git does the same on every machine; also for commands of `exec` that call git. */
export const gitEnv: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@example.invalid",
  GIT_COMMITTER_NAME: "C",
  GIT_COMMITTER_EMAIL: "c@example.invalid",
};

export function git(cwd: string, ...args: readonly string[]): string {
  const config = ["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...config, ...args], {
    cwd,
    env: { ...process.env, ...gitEnv },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Commits everything that stands in `dir`, making a repository of it when it is none. */
export function commitAll(dir: string, message: string): string {
  if (!fs.existsSync(path.join(dir, ".git"))) git(dir, "init", "--quiet");
  git(dir, "add", "--all");
  git(dir, "commit", "--quiet", "--allow-empty", "--message", message);
  return git(dir, "rev-parse", "HEAD").trim();
}

/** What `git status` tells of branch, index and files, asked without letting git refresh its index. */
export const gitStatus = (dir: string): string =>
  git(dir, "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=all", "--ignored");
