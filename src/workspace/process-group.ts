/**
 * The end of a process group (G5): asked first, killed after the grace. Used by whoever started one, and by a new holder of
 * a root for those that a killed holder left.
 */
import fs from "node:fs";
import { errnoOf, toFsPath } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { identifyProcess, isSameProcess } from "./process-identity.js";
import type { ProcessIdentity } from "./process-identity.js";

/** Between asking and killing, in milliseconds. */
const groupGraceMs = 2_000;
const pollMs = 20;

/** Resolves with true when something of it was still alive. */
export async function endGroup(fileSystem: FileSystem, group: number): Promise<boolean> {
  if (!isAlive(fileSystem, group)) return false;
  signalGroup(group, "SIGTERM");
  // A stopped process takes no signal but these.
  signalGroup(group, "SIGCONT");
  if (!(await goneWithin(fileSystem, group, groupGraceMs))) {
    signalGroup(group, "SIGKILL");
    await goneWithin(fileSystem, group, groupGraceMs);
  }
  return true;
}

/**
 * Makes sure that a group recorded by somebody who is dead is gone. Ended only when its leader is surely the one recorded;
 * when the leader is gone the group's guardian is at it, and is waited for. Resolves with false when some of it may be left.
 */
export async function settleGroup(fileSystem: FileSystem, leader: ProcessIdentity): Promise<boolean> {
  if (isSameProcess(fileSystem, leader)) {
    await endGroup(fileSystem, leader.pid);
    return !isAlive(fileSystem, leader.pid);
  }
  // A pid is not given out anew while a group bears it: another process of that pid means that the group is gone.
  if (identifyProcess(fileSystem, leader.pid) !== undefined) return true;
  return goneWithin(fileSystem, leader.pid, 2 * groupGraceMs);
}

async function goneWithin(fileSystem: FileSystem, group: number, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  while (isAlive(fileSystem, group)) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return true;
}

function signalGroup(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, name);
  } catch (error) {
    // Not permitted: it is there, and belongs to somebody else by now.
    return errnoOf(error) === "EPERM";
  }
}

/**
 * Whether anything but the dead who wait to be reaped is in the group. One look can miss a process whose parent ended right after it
 * was made, both in the moment of the listing; so only a second one that finds nothing is believed.
 */
function isAlive(fileSystem: FileSystem, group: number): boolean {
  for (let look = 0; look < 2; look++) {
    if (!signalGroup(group, 0)) return false;
    if (process.platform !== "linux" || hasMember(fileSystem, group)) return true;
  }
  return false;
}

function hasMember(fileSystem: FileSystem, group: number): boolean {
  const pids = (fileSystem.readdir("/proc") as string[]).filter((name) => /^\d+$/.test(name));
  return pids.some((pid) => {
    const [state, , pgrp] = statOf(fileSystem, pid);
    return pgrp === String(group) && state !== "Z" && state !== "X";
  });
}

/** State, parent, group and the rest, of a process that may end meanwhile. */
function statOf(fileSystem: FileSystem, pid: string): readonly (string | undefined)[] {
  let fd: number;
  try {
    fd = fileSystem.open(toFsPath(`/proc/${pid}/stat`), fs.constants.O_RDONLY);
  } catch {
    return [];
  }
  try {
    const buffer = Buffer.alloc(1024);
    const text = buffer.toString("latin1", 0, fileSystem.read(fd, buffer, 0, buffer.length, null));
    // The name stands in parentheses and may hold any character.
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  } finally {
    fileSystem.close(fd);
  }
}
