/** The known roots as they are on disk, for telling people what is wrong with them. Takes no lease and writes nothing. */
import path from "node:path";
import { isLooprigError, nodeFileSystem } from "../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { parsePurpose } from "./restore-purpose.js";
import { checkRecordedRoot, identityFromStored } from "./root-identity.js";
import { RootReader } from "./root-reader.js";
import { knownRoots } from "./session-list.js";

export interface RootExamination {
  readonly root: CanonicalRoot;
  /** "replaced": something else stands there. "unreadable": it cannot be looked at. */
  readonly state: "present" | "missing" | "replaced" | "unreadable";
  /** A restore or an exchange of directories that was cut short, by what it is; "damaged" when its record cannot be read. */
  readonly unsettled: string | undefined;
  /** Directories beside the root that stood there once and hold what no capture does. */
  readonly backups: readonly string[];
}

export async function examineRoots(
  storage: Storage,
  options: Abortable & { readonly fileSystem?: FileSystem | undefined } = {},
): Promise<readonly RootExamination[]> {
  const { signal, fileSystem = nodeFileSystem } = options;
  const found: RootExamination[] = [];
  for (const { root } of await knownRoots(storage, { signal })) {
    const reader = new RootReader({ storage, root, placement: "exclusive", fileSystem });
    const record = await reader.record.read({ signal });
    const state = record?.identity === undefined ? "present" : stateOf(fileSystem, root, record.identity);
    const unsettled = record?.swap === undefined ? await planOf(reader, { signal }) : "exchange of directories";
    const beside = (name: string): string => path.join(path.dirname(root), name);
    found.push({ root, state, unsettled, backups: (record?.backups ?? []).map(beside).filter(isThere(fileSystem)) });
  }
  return found;
}

function stateOf(
  fileSystem: FileSystem,
  root: CanonicalRoot,
  recorded: Parameters<typeof identityFromStored>[0],
): RootExamination["state"] {
  try {
    checkRecordedRoot(fileSystem, root, identityFromStored(recorded));
    return "present";
  } catch (error) {
    if (!isLooprigError(error, "workspace_root.changed")) return "unreadable";
    return error.details.state === "missing" ? "missing" : "replaced";
  }
}

async function planOf(reader: RootReader, options: Abortable): Promise<string | undefined> {
  try {
    const plan = await reader.plans.read(options);
    return plan === undefined ? undefined : parsePurpose(plan.record.purpose).action;
  } catch (error) {
    if (isLooprigError(error, "restore.plan_damaged")) return "damaged";
    throw error;
  }
}

const isThere =
  (fileSystem: FileSystem) =>
  (directory: string): boolean => {
    try {
      fileSystem.lstat(directory);
      return true;
    } catch {
      return false;
    }
  };
