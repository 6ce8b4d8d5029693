/** Storage in a directory of this machine (G4). This is an edge: the one place below the command line that reads the environment, for its default directory. */
import os from "node:os";
import path from "node:path";
import { LooprigError, errnoOf, isLooprigError, nodeFileSystem } from "../core/index.js";
import type { Abortable, FileSystem } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { createDiskReserve } from "./disk-reserve.js";
import { storageFailure } from "./failures.js";
import { createLocalBlobs } from "./local-blobs.js";
import { createLocalKv } from "./local-kv.js";
import { createLocalLeaser } from "./local-leaser.js";
import { createLocalLedger } from "./local-ledger.js";
import { defaultStateDir } from "./state-dir.js";
import { openStateDatabase } from "./state-database.js";
import { prepareStateDirectory } from "./state-directory.js";
import type { StateDirectory } from "./state-directory.js";
import { removeStrays } from "./strays.js";

/** What `openLocalStorage` may be given. */
export interface LocalStorageOptions extends Abortable {
  /** The state directory; made when absent. Default: `$LOOPRIG_HOME`, else the platform's place for state. */
  readonly dir?: string | undefined;
  /** Accepts a network file system, where locks of several machines may not see each other. Default false. */
  readonly allowNetworkFileSystem?: boolean | undefined;
  /**
   * How much of the disk captures leave free: below it they fail with `storage.reserve`, and only what a restore overwrites,
   * journals and collections are still written. Default: 2 % of the volume, at most 256 MiB.
   */
  readonly reserveBytes?: number | undefined;
  /** Every effect on files, except those of SQLite, goes through it. Default: the real one. */
  readonly fileSystem?: FileSystem | undefined;
}

/** Where `openLocalStorage` keeps its state when it is told nothing. Need not exist. */
export const localStateDir = (): string => defaultStateDir(process.env, process.platform, os.homedir());

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
  const { reserveBytes } = options;
  if (reserveBytes !== undefined && !(Number.isSafeInteger(reserveBytes) && reserveBytes >= 0)) {
    throw new LooprigError(
      "option.invalid",
      `Cannot open local storage: reserveBytes is ${String(reserveBytes)}, wanted a whole number of bytes`,
      { field: "reserveBytes", given: String(reserveBytes), wanted: "a whole number of bytes" },
    );
  }
  const reserve = createDiskReserve(fileSystem, directory, reserveBytes);
  removeStrays(fileSystem, directory, Date.now());
  let released = false;
  const openDatabase = () => openStateDatabase(fileSystem, directory, { signal: options.signal });
  const database = await openDatabase().catch((error: unknown) => {
    // SQLite needs room for its log even to read.
    if (!isLooprigError(error, "storage.full") || !reserve.releaseFile()) throw error;
    released = true;
    return openDatabase();
  });
  const leaser = createLocalLeaser(fileSystem, directory, database);

  const close = async (): Promise<void> => {
    database.seal();
    try {
      await leaser.close();
    } finally {
      database.close();
    }
    if (released) onDiskQuietly(() => reserve.takeBackFile());
  };
  return {
    ledger: createLocalLedger(database),
    leaser,
    kv: createLocalKv(database, directory.databaseFile),
    blobs: createLocalBlobs(fileSystem, directory, (operation, signal) => database.guard(operation, signal), reserve),
    locality: "local",
    persistencePaths: () => [directory.dir],
    spoolDir: directory.spoolDir,
    disk: {
      removeStrays: async () => removeStrays(fileSystem, directory, Date.now()),
      async withReserve(work) {
        onDiskQuietly(() => reserve.releaseFileIfFull());
        try {
          return await work();
        } finally {
          onDiskQuietly(() => reserve.takeBackFile());
        }
      },
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The reserve is a precaution: that it cannot be seen to is nothing the call it is for should fail of. */
function onDiskQuietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}
