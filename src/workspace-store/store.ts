/** Puts the parts of the snapshot engine together over one storage. */
import { nodeFileSystem, parseRef, SnapshotError } from "../core/index.js";
import type { Abortable, FileSystem, SnapshotRef } from "../core/index.js";
import type { Blobs, Storage } from "../storage/index.js";
import { FormatError } from "./byte-codec.js";
import { captureTree } from "./capture.js";
import { collect } from "./collect.js";
import type { CaptureEnvironment } from "./capture.js";
import { isPresent, readContent } from "./content.js";
import type { Tree, WorkspaceStore } from "./contracts.js";
import { deriveTree } from "./derive.js";
import { diffTrees } from "./diff.js";
import { keepFiles } from "./keep-files.js";
import { materializeTree } from "./materialize.js";
import { objectDamaged, ObjectStore } from "./object-store.js";
import { decodeSnapshot, objectOfRef } from "./object-ids.js";
import { pinTrees, WholeTrees } from "./pinned-trees.js";
import { Pins } from "./pins.js";
import { lookBelow } from "./single-paths.js";
import { StatIndexes } from "./stat-indexes.js";
import { storeStats } from "./stats.js";
import { createTree, storedDirectories, visitTree } from "./tree.js";
import { verifyRefs } from "./verify.js";

/** What `createWorkspaceStore` may be given. */
export interface WorkspaceStoreOptions {
  /**
   * Where stat indexes are kept between processes. Default: the storage's own `spoolDir`; where that has none, they live
   * as long as the store value.
   */
  readonly spoolDir?: string | undefined;
  readonly fileSystem?: FileSystem | undefined;
  /** Milliseconds of the clock that stamps files. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/** A workspace store over `storage.blobs`. Owns nothing that needs closing; the storage stays the caller's. */
export function createWorkspaceStore(storage: Storage, options: WorkspaceStoreOptions = {}): WorkspaceStore {
  const fileSystem = options.fileSystem ?? nodeFileSystem;
  const now = options.now ?? Date.now;
  const spoolDir = options.spoolDir ?? storage.spoolDir;
  const { blobs } = storage;
  const objects = new ObjectStore(blobs);
  const pins = new Pins(blobs);
  const whole = new WholeTrees();
  const directories = storedDirectories(objects);
  const persistencePaths = (): readonly string[] => [
    ...new Set([...storage.persistencePaths(), ...(spoolDir === undefined ? [] : [spoolDir])]),
  ];
  const environment = (): CaptureEnvironment => ({
    fileSystem,
    blobs,
    objects,
    statIndexes,
    storedDirectories: directories,
    includePrivate: storage.locality === "local",
    now,
    ownPaths: persistencePaths(),
    pins,
  });
  const statIndexes = new StatIndexes(fileSystem, spoolDir);

  const open = async (text: SnapshotRef, openOptions: Abortable = {}): Promise<Tree> => {
    const ref = parseRef(text);
    const object = objectOfRef(ref);
    if (!(await objects.find(object, openOptions))) throw unknownRef(ref);
    const bytes = await objects.read(object, openOptions);
    try {
      return createTree(decodeSnapshot(bytes), directories);
    } catch (error) {
      if (error instanceof FormatError) throw objectDamaged(object, undefined, error);
      throw error;
    }
  };

  return Object.freeze({
    capture: async (captureOptions) => {
      const { signal, useReserve } = captureOptions;
      // Whatever is wrong here, the capture says it in its own words.
      await objects.load({ signal }).catch(() => undefined);
      const { losses } = objects;
      const result = await captureTree(
        { ...environment(), blobs: useReserve === true ? blobs : sparing(blobs) },
        "capture",
        captureOptions,
      );
      // Nothing was lost all the while, so what the last look of the capture found still counts.
      if (objects.losses === losses) whole.set(result.ref, losses);
      return result;
    },
    keep: (files, keepOptions) => keepFiles({ blobs, objects, pins }, files, keepOptions),
    derive: async (deriveOptions) => {
      const { base, useReserve, signal } = deriveOptions;
      await objects.load({ signal });
      const { losses } = objects;
      const derived = await lookBelow(environment(), deriveOptions, (look, pace) =>
        deriveTree(
          { blobs: useReserve === true ? blobs : sparing(blobs), objects, storedDirectories: directories, pace, look },
          deriveOptions,
        ),
      );
      // As whole as its base: what is new was looked up by the call itself.
      if (whole.get(base.ref) === losses && objects.losses === losses) whole.set(derived.ref, losses);
      return derived;
    },
    look: (lookOptions, work) => lookBelow(environment(), lookOptions, (look) => work(look(undefined))),
    scan: (scanOptions) => captureTree(environment(), "scan", scanOptions),
    open,
    has: async (ref, hasOptions = {}) => {
      await objects.refresh(hasOptions);
      if (!(await objects.find(objectOfRef(parseRef(ref)), hasOptions))) return false;
      try {
        for await (const { path, entry } of visitTree(await open(ref, hasOptions), hasOptions)) {
          if (entry.kind !== "file") continue;
          if (!(await isPresent(objects, entry.id, entry.size, { ...hasOptions, path }))) return false;
        }
        return true;
      } catch (error) {
        if (error instanceof SnapshotError && error.code === "snapshot.object_missing") return false;
        throw error;
      }
    },
    diff: diffTrees,
    read: (file, readOptions) => readContent(objects, file, readOptions),
    materialize: (tree, dest, materializeOptions) =>
      materializeTree(fileSystem, objects, tree, dest, materializeOptions),
    verify: async (verifyOptions = {}) => {
      const refs = verifyOptions.refs ?? (await pins.list(verifyOptions)).flatMap((pin) => pin.refs);
      return verifyRefs(objects, [...new Set(refs.map(parseRef))], verifyOptions);
    },
    pin: (pin, refs, pinOptions = {}) => pinTrees({ blobs, objects, pins, whole }, pin, refs.map(parseRef), pinOptions),
    unpin: (pin, pinOptions) => pins.unpin(pin, pinOptions),
    pins: (pinOptions) => pins.list(pinOptions),
    collect: (collectOptions) =>
      collect({ blobs, objects, pins, leaser: storage.leaser, disk: storage.disk, now }, collectOptions),
    stats: (statsOptions = {}) => storeStats({ blobs, objects, pins }, statsOptions),
    persistencePaths,
  } satisfies WorkspaceStore);
}

/** The same blobs, written only while that leaves the reserve of the disk alone (U4). */
const sparing = (blobs: Blobs): Blobs => ({
  put: (key, chunks, options) => blobs.put(key, chunks, { ...options, sparing: true }),
  get: (key, options) => blobs.get(key, options),
  stat: (key, options) => blobs.stat(key, options),
  list: (prefix, options) => blobs.list(prefix, options),
  delete: (key, options) => blobs.delete(key, options),
});

function unknownRef(ref: SnapshotRef): SnapshotError {
  return new SnapshotError("snapshot.unknown", `Cannot open ${ref}: the store holds no such snapshot`, { ref });
}
