/**
 * One capture or scan: look at everything, read what is not known, store what is not stored, name the result.
 *
 * 1. The walk is complete and counted before the first byte of content is read (U11).
 * 2. A ref is returned only when every object it names is durable: written by this call, or found in the store by a look that
 *    came after the last write and after the pin (G2, G3). What vanished or was condemned meanwhile is read and stored again.
 * 3. Whatever ends the call early, what it stored and learnt is kept for the next one (K5); no ref and no pin is.
 */
import {
  displayName,
  errnoOf,
  isLooprigError,
  joinPath,
  nodeFileSystem,
  pacer,
  raceAbort,
  SnapshotError,
  StorageError,
} from "../core/index.js";
import type { Directory, FileSystem, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { assertRootUnmoved, openRoot, ownIdentities, rootUnreadable } from "./capture-root.js";
import { inBlocks, largestDirectories } from "./capture-size.js";
import { compileRules } from "./capture-rules.js";
import type { PathRules } from "./capture-rules.js";
import type {
  CaptureOptions,
  CaptureProgress,
  CaptureResult,
  ContentId,
  OmissionClass,
  Tree,
  TreeId,
} from "./contracts.js";
import { isPresent } from "./content.js";
import { encodeDirectories } from "./directory-nodes.js";
import type { ObjectStore } from "./object-store.js";
import { encodeSnapshot, objectOfRef, pieceBytes } from "./object-ids.js";
import { PackWriter } from "./pack-writer.js";
import type { Pins } from "./pins.js";
import { Reading } from "./reading.js";
import { lookerOf } from "./stamps.js";
import { StatIndexes } from "./stat-indexes.js";
import type { TableLoan } from "./stat-indexes.js";
import { NotThatDirectoryError } from "./table-directories.js";
import { nodeTree } from "./tree.js";
import type { DirectorySource } from "./tree.js";
import { omissionClasses } from "./tree-codec.js";
import { field, kinds, rowBytes, rowFlags } from "./table-layout.js";
import { Walk } from "./walk.js";

export interface CaptureEnvironment {
  readonly fileSystem: FileSystem;
  readonly blobs: Blobs;
  readonly objects: ObjectStore;
  readonly statIndexes: StatIndexes;
  readonly storedDirectories: DirectorySource;
  readonly includePrivate: boolean;
  /** Milliseconds of the clock that file stamps are taken from. */
  readonly now: () => number;
  /** Where this store itself writes (B2). */
  readonly ownPaths: readonly string[];
  readonly pins: Pins;
}

const publishAttemptsMax = 4;
/** How long an aborted capture may take to keep what it has. */
const keepMs = 600;
const progressEveryMs = 100;
/** Rows that are visited between two looks at the clock. */
const rowsBetweenPauses = 256;
export const filesMax = 500_000;
export const allocatedBytesMax = 4 * 1024 ** 3;

/** `mode` "scan" hashes the tree and stores nothing of it. */
export async function captureTree(
  environment: CaptureEnvironment,
  mode: "capture" | "scan",
  options: CaptureOptions,
): Promise<CaptureResult> {
  const { signal } = options;
  const { includePrivate, fileSystem, statIndexes } = environment;
  const rules = compileRules(options.rules ?? {}, includePrivate);
  try {
    signal?.throwIfAborted();
    using root = openRoot(fileSystem, options.root);
    const key = StatIndexes.key(options.root, options.rules ?? {}, includePrivate);
    using loan = await statIndexes.borrow({ key, dev: root.dev }, options);
    using capture = new Capture(environment, mode, options, rules, root, loan);
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
  readonly #root: Directory;
  readonly #loan: TableLoan;
  readonly #pace: () => Promise<void> | undefined;
  readonly #walk: Walk;
  readonly #reading: Reading;
  #writer: PackWriter;
  #searched = false;
  /** The ref of which this call made the pin. */
  #pinned: SnapshotRef | undefined;
  #bytesStoredBefore = 0;
  #reportedAt = 0;
  #estimate: CaptureProgress["estimate"];

  constructor(
    environment: CaptureEnvironment,
    mode: "capture" | "scan",
    options: CaptureOptions,
    rules: PathRules,
    root: Directory,
    loan: TableLoan,
  ) {
    this.#environment = environment;
    this.#storing = mode === "capture";
    this.#options = options;
    this.#root = root;
    this.#loan = loan;
    const slice = pacer(options.signal);
    this.#pace = () => {
      this.#report();
      return slice();
    };
    const { fileSystem, now, objects, blobs } = environment;
    const means = {
      fileSystem,
      looker: lookerOf(fileSystem),
      now,
      // A helper thread has the real file system and the real clock, so it must be these that are meant.
      threads: fileSystem === nodeFileSystem && now === Date.now,
      signal: options.signal,
      pace: this.#pace,
    };
    this.#walk = new Walk(loan.table, root, options.root, {
      ...means,
      rules,
      ownDirectories: ownIdentities(environment, options),
      ownPaths: options.ownPaths ?? new Set(),
    });
    this.#reading = new Reading(loan.table, this.#walk, {
      ...means,
      root,
      rootPath: options.root,
      objects,
    });
    this.#writer = new PackWriter(blobs, objects, options.signal);
  }

  async run(): Promise<CaptureResult> {
    try {
      await this.#look();
      const { tree, summary } = this.#storing ? await this.#store() : await this.#hash();
      assertRootUnmoved(this.#environment.fileSystem, this.#root, this.#options.root);
      // Whatever is wrong from here on, the capture is done.
      await this.#loan.save(pacer(undefined));
      return { ...summary, ref: tree.ref, tree, bytesRead: this.#reading.bytesRead, bytesStored: this.#bytesStored };
    } catch (error) {
      await this.#keep();
      if (error instanceof NotThatDirectoryError) throw rootUnreadable(this.#options.root, error);
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#walk[Symbol.dispose]();
  }

  // ── the three stages ──────────────────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    try {
      await this.#walk.run();
    } catch (error) {
      // Below the root an unreadable directory is an entry of the tree; the root itself has nothing to stand in.
      throw isLooprigError(error) || errnoOf(error) === undefined ? error : rootUnreadable(this.#options.root, error);
    }
    const { files, bytes } = await this.#measure();
    if (this.#storing && !this.#options.allowLarge) this.#assertSize(files, bytes);
    this.#estimate = { files, bytes };
  }

  async #hash(): Promise<{ readonly tree: Tree; readonly summary: Summary }> {
    const { objects } = this.#environment;
    await objects.load(this.#options);
    this.#renewPresence();
    await this.#markUnknown();
    await this.#reading.run(undefined);
    return { tree: await this.#encode(undefined), summary: await this.#summary() };
  }

  async #store(): Promise<{ readonly tree: Tree; readonly summary: Summary }> {
    const { objects, blobs } = this.#environment;
    const { signal } = this.#options;
    // The look at the end decides; until then what an earlier one said will do.
    await objects.load({ signal });
    for (let attempt = 1; attempt <= publishAttemptsMax; attempt++) {
      const losses = objects.losses;
      await this.#markAbsent();
      await this.#reading.run(this.#writer);
      const summary = await this.#summary();
      this.#assertComplete(summary);
      const tree = await this.#encode(this.#writer);
      await this.#writer.add(objectOfRef(tree.ref), encodeSnapshot(tree.id));
      await this.#writer.flush(signal);
      assertRootUnmoved(this.#environment.fileSystem, this.#root, this.#options.root);
      await this.#pin(tree.ref);
      await objects.look({ signal });
      if (objects.losses === losses && (await this.#isAllStored())) return { tree, summary };
      this.#bytesStoredBefore += this.#writer.bytesStored;
      this.#writer = new PackWriter(blobs, objects, signal);
    }
    throw new StorageError(
      "storage.failed",
      `Cannot capture "${displayName(this.#options.root)}": packs keep vanishing from the store while it is written`,
      { operation: "capture" },
      { retryable: true },
    );
  }

  async #pin(ref: SnapshotRef): Promise<void> {
    const { pin, signal } = this.#options;
    if (pin && this.#pinned !== ref && (await this.#environment.pins.pin(pin, [ref], { signal }))) this.#pinned = ref;
  }

  // ── what need not be read ─────────────────────────────────────────────────────────────────────────────────────────

  /** What was known of the store holds as long as nothing of it was lost. */
  #renewPresence(): void {
    const { losses } = this.#environment.objects;
    if (this.#loan.presentAsOf === losses) return;
    this.#loan.table.clearPresent();
    this.#loan.presentAsOf = losses;
  }

  /** Files whose content nobody knows are to be read. Returns how many there are. */
  async #markUnknown(): Promise<number> {
    const { table } = this.#loan;
    let count = 0;
    await this.#forFiles((row) => {
      if ((table.flags(row) & rowFlags.identified) !== 0) return;
      table.setFlags(row, rowFlags.unread);
      count++;
    });
    return count;
  }

  /** Files whose content nobody knows or the store does not have are to be read. */
  async #markAbsent(): Promise<void> {
    const { objects } = this.#environment;
    this.#renewPresence();
    const unknown = await this.#markUnknown();
    // What a killed capture left without an index is cheaper to take in than to read and store again.
    if (unknown > 0 && objects.hasOrphans) await objects.adoptOrphans(this.#options);
    const { table } = this.#loan;
    for (const row of await this.#absent())
      table.setFlags(row, rowFlags.unread, rowFlags.trusted | rowFlags.identified);
  }

  /** Whether the store has the content of every file, now that all was written. */
  async #isAllStored(): Promise<boolean> {
    return (await this.#absent()).length === 0;
  }

  /** The rows of identified files whose content the store does not have; marks those that it has. */
  async #absent(): Promise<readonly number[]> {
    const { objects } = this.#environment;
    const { table } = this.#loan;
    const look = async (rows: readonly number[]): Promise<number[]> => {
      const missing: number[] = [];
      for (let i = 0; i < rows.length; i++) {
        if (i % rowsBetweenPauses === 0) await this.#pace();
        const row = rows[i] as number;
        const isLarge = table.size(row) > pieceBytes;
        const isThere = isLarge ? await this.#isLargePresent(row) : objects.hasAt(table.bytes, row + field.digest);
        if (isThere) table.setFlags(row, rowFlags.present);
        else missing.push(row);
      }
      return missing;
    };
    const open: number[] = [];
    await this.#forFiles((row) => {
      const flags = table.flags(row);
      if ((flags & rowFlags.identified) !== 0 && (flags & rowFlags.present) === 0) open.push(row);
    });
    const missing = await look(open);
    if (missing.length === 0 || this.#searched) return missing;
    // Another process's pack, or one that lost its index, is cheaper to take in than its files are to read.
    this.#searched = true;
    await objects.refresh(this.#options);
    await objects.adoptOrphans(this.#options);
    return look(missing);
  }

  #isLargePresent(row: number): Promise<boolean> {
    const { table } = this.#loan;
    const id = table.bytes.toString("hex", row + field.digest, row + field.digest + 32) as ContentId;
    return isPresent(this.#environment.objects, id, table.size(row), this.#options);
  }

  #forFiles(visit: (row: number) => void): Promise<void> {
    const { table } = this.#loan;
    return this.#forRows((row) => {
      if (table.kind(row) === kinds.file) visit(row);
    });
  }

  /** Visits all rows, with pauses. */
  async #forRows(visit: (row: number, directory: number) => void): Promise<void> {
    const { table } = this.#loan;
    let sincePause = 0;
    for (let directory = 0; directory < table.directories; directory++) {
      if (!table.has(directory)) continue;
      const count = table.rowCount(directory);
      for (let i = 0, row = table.rows(directory); i < count; i++, row += rowBytes) {
        visit(row, directory);
        if (++sincePause < rowsBetweenPauses) continue;
        sincePause = 0;
        await this.#pace();
      }
    }
  }

  // ── naming ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #encode(writer: PackWriter | undefined): Promise<Tree> {
    const { objects, storedDirectories } = this.#environment;
    const { table } = this.#loan;
    const nodes = await encodeDirectories(table, objects, writer, this.#pace);
    const id = table.bytes.toString("hex", table.treeId(0), table.treeId(0) + 32) as TreeId;
    return nodeTree(id, nodes, storedDirectories);
  }

  async #summary(): Promise<Summary> {
    const { table } = this.#loan;
    const omitted: { path: WorkspacePath; class: OmissionClass }[] = [];
    let files = 0;
    await this.#forRows((row, directory) => {
      const kind = table.kind(row);
      if (kind === kinds.file) files++;
      if (kind !== kinds.omitted) return;
      const path = joinPath(table.pathOf(directory) as WorkspacePath, table.name(directory, row));
      omitted.push({ path, class: omissionClasses[table.omissionClass(row)] as OmissionClass });
    });
    const partial = omitted.some(({ class: why }) => why === "unreadable" || why === "unstable");
    return { completeness: partial ? "partial" : "complete", omitted, files };
  }

  get #bytesStored(): number {
    return this.#bytesStoredBefore + this.#writer.bytesStored;
  }

  /** After a failure or an abort: content to packs, and what was learnt to the stat index. */
  async #keep(): Promise<void> {
    const { pin } = this.#options;
    // The failure that brought us here is the one to report. A pin that stays all the same keeps a whole tree alive.
    if (pin && this.#pinned) await this.#environment.pins.takeBack(pin, [this.#pinned]).catch(() => undefined);
    if (this.#storing) {
      const limit = AbortSignal.timeout(keepMs);
      await raceAbort(this.#writer.flush(limit), limit).catch(() => undefined);
    }
    await this.#loan.save(pacer(undefined)).catch(() => undefined);
  }

  // ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What capturing costs. */
  async #measure(): Promise<{ readonly files: number; readonly bytes: number }> {
    const { table } = this.#loan;
    let files = 0;
    let bytes = 0;
    await this.#forFiles((row) => {
      files++;
      bytes += inBlocks(table.size(row));
    });
    return { files, bytes };
  }

  #assertSize(files: number, bytes: number): void {
    if (files <= filesMax && bytes <= allocatedBytesMax) return;
    const largest = largestDirectories(this.#loan.table);
    const first = largest[0];
    throw new SnapshotError(
      "capture.too_large",
      `Cannot capture "${displayName(this.#options.root)}" without consent: it holds ${files} files and ${bytes} bytes; ` +
        `wanted at most ${filesMax} files and ${allocatedBytesMax} bytes; exclude what need not be kept or allow it`,
      { files, bytes, largest },
      { hint: first === undefined ? undefined : `to leave the largest directory out, exclude "/${first.path}/"` },
    );
  }

  #assertComplete({ omitted }: Summary): void {
    if (!this.#options.strict) return;
    const strict: readonly OmissionClass[] = ["unreadable", "unstable", "over-size"];
    const paths = omitted.filter(({ class: why }) => strict.includes(why));
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

  #report(): void {
    const { onProgress } = this.#options;
    if (onProgress === undefined) return;
    const now = performance.now();
    if (now - this.#reportedAt < progressEveryMs) return;
    this.#reportedAt = now;
    onProgress({
      filesSeen: this.#walk.seen,
      bytesRead: this.#reading.bytesRead,
      bytesStored: this.#bytesStored,
      ...(this.#estimate === undefined ? {} : { estimate: this.#estimate }),
    });
  }
}

type Summary = Pick<CaptureResult, "completeness" | "omitted" | "files">;
