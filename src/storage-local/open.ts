/** Storage in a directory of this machine (G4). This is an edge: the one place below the command line that reads the environment, for its default directory. */
import os from "node:os";
import path from "node:path";
import { LooprigError, errnoOf, isMissing, nodeFileSystem, temporaryPrefix } from "../core/index.js";
import type { Abortable, FileSystem } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { storageFailure } from "./failures.js";
import { createLocalBlobs } from "./local-blobs.js";
import { createLocalKv } from "./local-kv.js";
import { createLocalLeaser } from "./local-leaser.js";
import { createLocalLedger } from "./local-ledger.js";
import { defaultStateDir } from "./state-dir.js";
import { openStateDatabase } from "./state-database.js";
import { prepareStateDirectory } from "./state-directory.js";
import type { StateDirectory } from "./state-directory.js";

/** What `openLocalStorage` may be given. */
export interface LocalStorageOptions extends Abortable {
  /** The state directory; made when absent. Default: `$LOOPRIG_HOME`, else the platform's place for state. */
  readonly dir?: string | undefined;
  /** Accepts a network file system, where locks of several machines may not see each other. Default false. */
  readonly allowNetworkFileSystem?: boolean | undefined;
  /** Every effect on files, except those of SQLite, goes through it. Default: the real one. */
  readonly fileSystem?: FileSystem | undefined;
}

/** Where `openLocalStorage` keeps its state when it is told nothing. Need not exist. */
export const localStateDir = (): string => defaultStateDir(process.env, process.platform, os.homedir());

/** How old a file that was never published must be before it is swept: older than any write that could still be at it. */
const temporaryAgeMs = 24 * 60 * 60 * 1000;

/**
 * Opens the state directory, and makes it when it is absent or empty. Several processes, and several storages of one
 * process, may have it open at once. An abort leaves at most an empty store.
 *
 * Throws `option.invalid`, `platform.unsupported`, `storage.foreign_owner`, `storage.network_file_system`,
 * `storage.not_a_store`, `storage.unsupported_version`, `storage.damaged`, `storage.full`, `storage.failed`, `storage.busy`.
 */
export async function openLocalStorage(options: LocalStorageOptions = {}): Promise<Storage> {
  const fileSystem = options.fileSystem ?? nodeFileSystem;
  if (process.platform === "win32") {
    throw new LooprigError(
      "platform.unsupported",
      `Cannot open local storage on "${process.platform}": its locks and modes are not built for it yet; use Linux or macOS`,
      { platform: process.platform },
    );
  }
  const given: unknown = options.dir ?? localStateDir();
  if (typeof given !== "string" || given.trim() === "" || given.includes("\0")) {
    throw new LooprigError(
      "option.invalid",
      `Cannot open local storage: dir is ${JSON.stringify(given)}, wanted the path of a directory`,
      { field: "dir", given: String(given), wanted: "the path of a directory" },
    );
  }
  options.signal?.throwIfAborted();

  let directory: StateDirectory;
  try {
    directory = prepareStateDirectory(fileSystem, given, {
      allowNetworkFileSystem: options.allowNetworkFileSystem ?? false,
      uid: process.geteuid?.(),
      platform: process.platform,
    });
  } catch (error) {
    throw storageFailure(error, "open", path.resolve(given), fileSystem);
  }
  sweepTemporaries(fileSystem, directory, Date.now());
  const database = await openStateDatabase(fileSystem, directory, { signal: options.signal });
  const leaser = createLocalLeaser(fileSystem, directory, database);

  const close = async (): Promise<void> => {
    database.seal();
    try {
      await leaser.close();
    } finally {
      database.close();
    }
  };
  return {
    ledger: createLocalLedger(database),
    leaser,
    kv: createLocalKv(database, directory.databaseFile),
    blobs: createLocalBlobs(fileSystem, directory, (operation, signal) => database.guard(operation, signal)),
    locality: "local",
    persistencePaths: () => [directory.dir],
    spoolDir: directory.spoolDir,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Removes what killed writers left unpublished. Failures do not matter: it is tried again at the next opening. */
function sweepTemporaries(fileSystem: FileSystem, directory: StateDirectory, now: number): void {
  for (const dir of [directory.dir, directory.temporaryDir, directory.leasesDir]) {
    for (const name of fileSystem.readdir(dir).map(String)) {
      if (!name.startsWith(temporaryPrefix)) continue;
      const file = path.join(dir, name);
      try {
        if (now - Number(fileSystem.lstat(file).mtimeMs) > temporaryAgeMs) fileSystem.unlink(file);
      } catch (error) {
        if (!isMissing(error) && errnoOf(error) === undefined) throw error;
      }
    }
  }
}
