/** What a reader needs to know of the machine, and nothing that names it. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";

const fileSystems = {
  0xef53: "ext4",
  0x01021994: "tmpfs",
  0x58465342: "xfs",
  0x9123683e: "btrfs",
  0x2fc12fc1: "zfs",
  0x794c7630: "overlay",
};
const repository = new URL("..", import.meta.url).pathname;

export function describeMachine(dir) {
  const { type } = fs.statfsSync(dir);
  return {
    ...{ date: new Date().toISOString().slice(0, 10), commit: commit() },
    ...{
      node: process.version,
      arch: process.arch,
      system: `${os.type()} ${os.release().split(".").slice(0, 2).join(".")}`,
    },
    cpus: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    fileSystem: fileSystems[type] ?? `0x${type.toString(16)}`,
    loadAtStart: load(),
  };
}

export const load = () => Number(os.loadavg()[0].toFixed(1));

/** The commit the build is of; "+" where sources differ from it. */
function commit() {
  const git = (...args) => spawnSync("git", args, { cwd: repository, encoding: "utf8" }).stdout?.trim() ?? "";
  const changed = git("status", "--porcelain", "--", "src") === "" ? "" : "+";
  return `${git("rev-parse", "--short", "HEAD")}${changed}`;
}
