/**
 * One capture or scan: look at everything, read what is not known, store what is not stored, name the result.
 *
 * 1. The walk is complete and counted before the first byte of content is read (U11).
 * 2. A ref is returned only when every object it names is durable: written by this call, or in the index of a listing that
 *    is younger than the last write (G3). If packs vanished meanwhile, what they held is read and stored again.
 * 3. Whatever ends the call early, what it stored and learnt is kept for the next one (K5); no ref and no pin is.
 */
import {
  displayName,
  errnoOf,
  isLooprigError,
  joinPath,
  pacer,
  SnapshotError,
  StorageError,
  toFsPath,
} from "../core/index.js";
import type { FileSystem, WorkspacePath, Directory } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { openRoot, rootUnreadable } from "./capture-root.js";
import { largestDirectories } from "./capture-size.js";
import { compileRules } from "./capture-rules.js";
import type { PathRules } from "./capture-rules.js";
import type { CaptureOptions, CaptureResult, ContentId, OmissionClass, Tree, TreeEntry, TreeId } from "./contracts.js";
import { ContentReader } from "./content-reader.js";
import { isPresent } from "./content.js";
import { DirectoryReplacedError } from "./open-directories.js";
import type { ObjectStore } from "./object-store.js";
import { encodeSnapshot, objectIdOf, objectOfRef } from "./object-ids.js";
import { PackWriter } from "./pack-writer.js";
import { matches, permissionBits } from "./stat-index.js";
import type { StatIndexHead, StatRow, StatRows } from "./stat-index.js";
import { StatIndexStore } from "./stat-index-store.js";
import { encodeTree } from "./tree-codec.js";
import type { NamedEntry } from "./tree-codec.js";
import { memoryTree } from "./tree.js";
import type { DirectorySource } from "./tree.js";
import { assertOwnMeans, identityKey, measure, preorder, replaceEntry, Walk } from "./walk.js";
import type { FoundDirectory, FoundEntry, FoundFile, FoundOmission } from "./walk.js";

export interface CaptureEnvironment {
  readonly fileSystem: FileSystem;
  readonly blobs: Blobs;
  readonly objects: ObjectStore;
  readonly statIndexes: StatIndexStore;
  readonly storedDirectories: DirectorySource;
  readonly includePrivate: boolean;
  /** Milliseconds of the clock that file stamps are taken from. */
  readonly now: () => number;
  /** Where this store itself writes (B2). */
  readonly ownPaths: readonly string[];
  readonly pin: (ref: CaptureResult["ref"], pin: NonNullable<CaptureOptions["pin"]>) => Promise<void>;
}

const readsMax = 5;
const replacementsMax = 3;
const publishAttemptsMax = 4;
/** How long an aborted capture may take to keep what it has. */
const keepMs = 600;
const progressEveryMs = 100;
export const filesMax = 500_000;
export const allocatedBytesMax = 4 * 1024 ** 3;

/** `mode` "scan" hashes the tree and stores nothing of it. */
export async function captureTree(
  environment: CaptureEnvironment,
  mode: "capture" | "scan",
  options: CaptureOptions,
): Promise<CaptureResult> {
  const { signal } = options;
  const rules = compileRules(options.rules ?? {}, environment.includePrivate);
  try {
    signal?.throwIfAborted();
    using root = openRoot(environment.fileSystem, options.root);
    using capture = new Capture(environment, mode, options, rules, root);
    return await capture.run();
  } catch (error) {
    if (!signal?.aborted) throw error;
    throw new SnapshotError(
      "capture.canceled",
      `The capture of "${displayName(options.root)}" was cancelled; what it stored is kept for the next one`,
      {},
      { cause: signal.reason, retryable: true },
    );
  }
}

class Capture implements Disposable {
  readonly #environment: CaptureEnvironment;
  readonly #storing: boolean;
  readonly #options: CaptureOptions;
  readonly #rules: PathRules;
  readonly #root: Directory;
  readonly #pace: () => Promise<void> | undefined;
  readonly #walk: Walk;
  readonly #reader: ContentReader;
  readonly #head: StatIndexHead;
  #writer: PackWriter;
  #known: StatRows = new Map();
  readonly #learnt = new Map<string, StatRow>();
  #learntNew = 0;
  readonly #replacements = new Map<string, number>();
  /** Contents of which every object was found or added during the present attempt. */
  #present = new Set<ContentId>();
  #searched = false;
  #bytesStoredBefore = 0;
  #reportedAt = 0;

  constructor(
    environment: CaptureEnvironment,
    mode: "capture" | "scan",
    options: CaptureOptions,
    rules: PathRules,
    root: Directory,
  ) {
    this.#environment = environment;
    this.#storing = mode === "capture";
    this.#options = options;
    this.#rules = rules;
    this.#root = root;
    const slice = pacer(options.signal);
    this.#pace = () => {
      this.#report();
      return slice();
    };
    this.#walk = new Walk(environment.fileSystem, root, {
      rules,
      ownDirectories: this.#ownDirectories(),
      ownPaths: options.ownPaths ?? new Set(),
      pace: this.#pace,
    });
    this.#writer = new PackWriter(environment.blobs, environment.objects);
    this.#reader = new ContentReader(environment.fileSystem, {
      sink: this.#storing ? { add: (id, bytes) => this.#writer.add(id, bytes) } : undefined,
      now: environment.now,
      pace: this.#pace,
    });
    this.#head = { key: StatIndexStore.key(options.root, options.rules ?? {}), dev: root.dev };
  }

  async run(): Promise<CaptureResult> {
    try {
      await this.#walk.run();
    } catch (error) {
      // Below the root an unreadable directory is an entry of the tree; the root itself has nothing to stand in.
      throw isLooprigError(error) || errnoOf(error) === undefined ? error : rootUnreadable(this.#options.root, error);
    }
    if (this.#storing && !this.#options.allowLarge) this.#assertSize();
    this.#known = await this.#environment.statIndexes.load(this.#head, this.#pace);
    try {
      const tree = this.#storing ? await this.#store() : await this.#hash();
      this.#assertRootUnmoved();
      if (this.#storing && this.#options.pin) await this.#environment.pin(tree.ref, this.#options.pin);
      await this.#saveRows();
      return { ...this.#summary(), ref: tree.ref, tree };
    } catch (error) {
      await this.#keep();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#walk[Symbol.dispose]();
  }

  // ── the three stages ──────────────────────────────────────────────────────────────────────────────────────────────

  async #hash(): Promise<Tree> {
    await this.#readFiles();
    return this.#encode(() => undefined);
  }

  async #store(): Promise<Tree> {
    const { objects, blobs } = this.#environment;
    const { signal } = this.#options;
    // The listing at the end decides; until then what an earlier one said will do.
    await objects.load({ signal });
    for (let attempt = 1; attempt <= publishAttemptsMax; attempt++) {
      const losses = objects.losses;
      this.#present = new Set();
      await this.#readFiles();
      this.#assertComplete();
      const tree = await this.#encode((id, bytes) => this.#writer.add(id, bytes));
      await this.#writer.add(objectOfRef(tree.ref), encodeSnapshot(tree.id));
      await this.#writer.flush(signal);
      await objects.refresh({ signal });
      if (objects.losses === losses) return tree;
      this.#bytesStoredBefore += this.#writer.bytesStored;
      this.#writer = new PackWriter(blobs, objects);
    }
    throw new StorageError(
      "storage.failed",
      `Cannot capture "${displayName(this.#options.root)}": packs keep vanishing from the store while it is written`,
      { operation: "capture" },
      { retryable: true },
    );
  }

  /** Gives every file of the tree its id, by what is known or by reading it. */
  async #readFiles(): Promise<void> {
    const stack = [this.#walk.top];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (this.#replacements.size > 0 && !isAttached(next)) continue;
      const replaced = await this.#readFilesIn(next);
      if (replaced) stack.push(replaced);
      else stack.push(...next.entries.filter((entry) => entry.kind === "directory").reverse());
    }
  }

  /** Returns the directory to go on with when the given one, or one above it, was replaced. */
  async #readFilesIn(directory: FoundDirectory): Promise<FoundDirectory | undefined> {
    for (const entry of [...directory.entries]) {
      if (entry.kind !== "file") continue;
      await this.#pace();
      if (await this.#isKnown(directory, entry)) continue;
      try {
        replaceEntry(directory, entry.name, await this.#readFile(directory, entry));
      } catch (error) {
        const place = this.#lostPlace(directory, error);
        return this.#lookAgain(place);
      }
    }
    return undefined;
  }

  async #isKnown(directory: FoundDirectory, file: FoundFile): Promise<boolean> {
    if (file.id !== undefined && (!this.#storing || (await this.#isStored(file.id, Number(file.stats.size)))))
      return true;
    const path = joinPath(directory.path, file.name);
    const row = this.#known.get(path);
    if (row === undefined || !matches(row, file.stats)) return false;
    if (this.#storing && !(await this.#isStored(row.id, Number(row.size)))) return false;
    file.id = row.id;
    this.#learnt.set(path, row);
    return true;
  }

  async #isStored(id: ContentId, size: number): Promise<boolean> {
    if (this.#present.has(id)) return true;
    const { objects } = this.#environment;
    let present = await isPresent(objects, id, size, this.#options);
    if (!present && !this.#searched) {
      // Another process's pack, or one that lost its index, is cheaper to take in than its files are to read.
      this.#searched = true;
      await objects.refresh(this.#options);
      await objects.adoptOrphans(this.#options);
      present = await isPresent(objects, id, size, this.#options);
    }
    if (present) this.#present.add(id);
    return present;
  }

  /** What stands at the file's name, read. Throws what opening its directory throws. */
  async #readFile(directory: FoundDirectory, seen: FoundFile): Promise<FoundEntry | undefined> {
    const path = joinPath(directory.path, seen.name);
    let file = seen;
    for (let reads = 0; reads < readsMax; reads++) {
      const handle = this.#walk.directories.get(directory);
      const outcome = await this.#reader.read(handle, file.name, path, file.stats);
      if (outcome.kind === "unreadable") return omission(file.name, "unreadable");
      if (outcome.kind === "read") {
        const { maxFileBytes } = this.#rules;
        if (maxFileBytes !== undefined && outcome.stats.size > maxFileBytes) {
          return omission(file.name, "over-size");
        }
        file.stats = outcome.stats;
        file.id = outcome.id;
        this.#present.add(outcome.id);
        if (outcome.settled) this.#learn(path, file);
        return file;
      }
      await this.#pace();
      const found = this.#walk.lookIn(directory, file.name);
      if (found?.kind === "directory") {
        const expanded = await this.#walk.expand(found);
        if (expanded === "unreadable") return omission(file.name, "unreadable");
        if (expanded === "done") return found;
        continue;
      }
      if (found?.kind !== "file") return found;
      file = found;
    }
    return omission(file.name, "unstable");
  }

  #learn(path: string, { stats, id }: FoundFile): void {
    const { ino, size, mtimeNs, ctimeNs, mode } = stats;
    this.#learnt.set(path, { ino, size, mtimeNs, ctimeNs, mode: Number(mode & permissionBits), id: id as ContentId });
    this.#learntNew++;
  }

  // ── directories that go away under us ─────────────────────────────────────────────────────────────────────────────

  #lostPlace(directory: FoundDirectory, error: unknown): FoundDirectory {
    if (error instanceof DirectoryReplacedError) return error.place as FoundDirectory;
    const errno = errnoOf(error);
    if (errno === undefined || !["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(errno)) {
      assertOwnMeans(error, directory.path);
      throw error;
    }
    // The uppermost one that cannot be opened any more.
    let lost = directory;
    for (let at = directory; at.parent !== undefined; at = at.parent) {
      try {
        this.#walk.directories.get(at);
      } catch {
        lost = at;
      }
    }
    return lost;
  }

  async #lookAgain(lost: FoundDirectory): Promise<FoundDirectory> {
    const { parent } = lost;
    if (parent === undefined) throw rootUnreadable(this.#options.root);
    const count = (this.#replacements.get(lost.path) ?? 0) + 1;
    this.#replacements.set(lost.path, count);
    let found = count > replacementsMax ? omission(lost.name, "unstable") : this.#walk.lookIn(parent, lost.name);
    if (found?.kind === "directory") {
      const expanded = await this.#walk.expand(found);
      if (expanded === "gone" || expanded === "replaced") return this.#lookAgain(lost);
      if (expanded === "unreadable") found = omission(lost.name, "unreadable");
    }
    replaceEntry(parent, lost.name, found);
    // What is a file now is read when the directory it stands in is gone through once more.
    return found?.kind === "directory" ? found : parent;
  }

  // ── naming ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #encode(add: (id: TreeId, bytes: Uint8Array) => Promise<void> | undefined): Promise<Tree> {
    const directories = new Map<TreeId, readonly NamedEntry[]>();
    for (const directory of preorder(this.#walk.top).reverse()) {
      const entries = directory.entries.map((found) => [found.name, treeEntry(found)] as const);
      const bytes = encodeTree(entries);
      directory.id = objectIdOf(bytes) as TreeId;
      directories.set(directory.id, entries);
      await add(directory.id, bytes);
      await this.#pace();
    }
    return memoryTree(this.#walk.top.id as TreeId, directories, this.#environment.storedDirectories);
  }

  #summary(): Omit<CaptureResult, "ref" | "tree"> {
    const omitted: { path: WorkspacePath; class: OmissionClass }[] = [];
    let files = 0;
    for (const directory of preorder(this.#walk.top)) {
      for (const entry of directory.entries) {
        if (entry.kind === "file") files++;
        else if (entry.kind === "omitted")
          omitted.push({ path: joinPath(directory.path, entry.name), class: entry.class });
      }
    }
    const partial = omitted.some(({ class: why }) => why === "unreadable" || why === "unstable");
    return {
      completeness: partial ? "partial" : "complete",
      omitted,
      files,
      bytesRead: this.#reader.bytesRead,
      bytesStored: this.#bytesStored,
    };
  }

  get #bytesStored(): number {
    return this.#bytesStoredBefore + this.#writer.bytesStored;
  }

  // ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #saveRows(): Promise<void> {
    if (this.#learntNew === 0 && this.#learnt.size === this.#known.size) return;
    await this.#environment.statIndexes.save(this.#head, this.#learnt, pacer(undefined));
  }

  /** After a failure or an abort: content to packs, then what was learnt of files on top of what was known. */
  async #keep(): Promise<void> {
    // The failure that brought us here is the one to report.
    if (this.#storing) await this.#writer.flush(AbortSignal.timeout(keepMs)).catch(() => undefined);
    if (this.#learntNew === 0) return;
    const rows = new Map([...this.#known, ...this.#learnt]);
    await this.#environment.statIndexes.save(this.#head, rows, pacer(undefined)).catch(() => undefined);
  }

  // ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #assertSize(): void {
    const all = preorder(this.#walk.top);
    const { files, allocatedBytes } = measure(all);
    if (files <= filesMax && allocatedBytes <= allocatedBytesMax) return;
    const largest = largestDirectories(this.#walk.top);
    const first = largest[0];
    throw new SnapshotError(
      "capture.too_large",
      `Cannot capture "${displayName(this.#options.root)}" without consent: it holds ${files} files and ${allocatedBytes} bytes; ` +
        `wanted at most ${filesMax} files and ${allocatedBytesMax} bytes; exclude what need not be kept or allow it`,
      { files, bytes: allocatedBytes, largest },
      { hint: first === undefined ? undefined : `to leave the largest directory out, exclude "/${first.path}/"` },
    );
  }

  #assertComplete(): void {
    if (!this.#options.strict) return;
    const strict: readonly OmissionClass[] = ["unreadable", "unstable", "over-size"];
    const paths = this.#summary().omitted.filter(({ class: why }) => strict.includes(why));
    const first = paths[0];
    if (first === undefined) return;
    throw new SnapshotError(
      "capture.incomplete",
      `Cannot capture "${displayName(this.#options.root)}" completely: "${displayName(first.path)}" is ${first.class}` +
        (paths.length > 1 ? ` and ${paths.length - 1} more paths could not be captured` : "") +
        `; wanted every path; mend or exclude them, or capture without "strict"`,
      { paths },
    );
  }

  /** A root that was removed or replaced meanwhile reads as empty or stale: never a success. */
  #assertRootUnmoved(): void {
    let found: { readonly dev: bigint; readonly ino: bigint };
    try {
      found = this.#environment.fileSystem.stat(toFsPath(this.#options.root));
    } catch (error) {
      throw rootUnreadable(this.#options.root, error);
    }
    if (found.ino !== this.#root.ino || found.dev !== this.#root.dev) throw rootUnreadable(this.#options.root);
  }

  #ownDirectories(): Set<string> {
    const identities = new Set<string>();
    for (const { dev, ino } of this.#options.ownDirectories ?? []) identities.add(identityKey(dev, ino));
    for (const own of this.#environment.ownPaths) {
      try {
        const { dev, ino } = this.#environment.fileSystem.stat(toFsPath(own));
        identities.add(identityKey(dev, ino));
      } catch (error) {
        // Not made yet, so not in the tree either.
        if (errnoOf(error) === undefined) throw error;
      }
    }
    return identities;
  }

  #report(): void {
    const { onProgress } = this.#options;
    if (onProgress === undefined) return;
    const now = performance.now();
    if (now - this.#reportedAt < progressEveryMs) return;
    this.#reportedAt = now;
    onProgress({
      filesSeen: this.#walk.filesSeen,
      bytesRead: this.#reader.bytesRead,
      bytesStored: this.#bytesStored,
    });
  }
}

const omission = (name: string, why: OmissionClass): FoundOmission => ({ kind: "omitted", name, class: why });

function treeEntry(found: FoundEntry): TreeEntry {
  switch (found.kind) {
    case "file":
      return {
        kind: "file",
        mode: Number(found.stats.mode & permissionBits),
        size: Number(found.stats.size),
        id: found.id as ContentId,
      };
    case "directory":
      return { kind: "directory", mode: found.mode, id: found.id as TreeId };
    case "symlink":
      return { kind: "symlink", target: found.target };
    case "omitted":
      return { kind: "omitted", class: found.class };
  }
}

function isAttached(directory: FoundDirectory): boolean {
  for (let at = directory; at.parent !== undefined; at = at.parent) if (!at.parent.entries.includes(at)) return false;
  return true;
}
