/**
 * Gives every file of a tree its id, by reading what is not known: much at once with helper threads, the rest here, and what
 * does not hold still with care. Owns the choice between them and the attempts at one file.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Directory, FileSystem } from "../core/index.js";
import type { Claims } from "./claims.js";
import { SharedClaims } from "./claims.js";
import type { OmissionClass } from "./contracts.js";
import { claimingSink, FileReader } from "./file-reader.js";
import type { ObjectSink } from "./file-reader.js";
import { isHelperReady, prepareHelpers, takeHelpers } from "./lanes.js";
import { BlockBuilder } from "./block-builder.js";
import { encodePieces, objectIdOf, pieceBytes, pieceCount } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import type { ObjectStore } from "./object-store.js";
import type { EncodedBlock } from "./pack-codec.js";
import type { PackWriter } from "./pack-writer.js";
import { itemWords, outcomes, readCounters, readFiles, takeIn, wholeFile } from "./read-lane.js";
import type { ReadJob } from "./read-lane.js";
import { idsOf, planReading, unreadIn } from "./read-plan.js";
import type { FilePlace, LargeFile, ReadPlan, Unread } from "./read-plan.js";
import { isSameLook, isSettled } from "./stamps.js";
import type { Look, Looker } from "./stamps.js";
import { directoryFlags, looks, rowBytes } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";
import { assertOwnMeans } from "./found.js";
import type { Walk } from "./walk.js";

export interface ReadingOptions {
  readonly fileSystem: FileSystem;
  readonly looker: Looker;
  readonly now: () => number;
  readonly threads: boolean;
  readonly root: Directory;
  readonly rootPath: string;
  readonly objects: ObjectStore;
  readonly signal: AbortSignal | undefined;
  readonly pace: () => Promise<void> | undefined;
}

const readsMax = 5;
/** How long ago the last write of a large file should be, and what one capture may spend on waiting for that. */
const quietMs = 100;
const waitsMaxMs = 200;

/** From here on a ready helper is worth the messages, and starting one its 70 ms. */
const forHelper = { files: 200, bytes: 4 * 1024 * 1024 };
const forNewHelper = { files: 2000, bytes: 16 * 1024 * 1024 };
const lanesMax = 8;
/** Items or digests between two looks at the clock. */
const itemsBetweenPauses = 256;

export class Reading {
  readonly #table: TreeTable;
  readonly #walk: Walk;
  readonly #options: ReadingOptions;
  readonly #reader: FileReader;
  /** By lane; this thread's own is the first and counted by its reader. */
  readonly #laneBytes = new Float64Array(new SharedArrayBuffer(lanesMax * 8));
  #laneBytesBefore = 0;
  #waitLeftMs = waitsMaxMs;

  constructor(table: TreeTable, walk: Walk, options: ReadingOptions) {
    this.#table = table;
    this.#walk = walk;
    this.#options = options;
    this.#reader = new FileReader(options.fileSystem, options.looker, options.now);
  }

  /** Bytes read so far, repeats included. */
  get bytesRead(): number {
    return this.#laneBytes.reduce((sum, bytes) => sum + bytes, this.#laneBytesBefore + this.#reader.bytesRead);
  }

  /** Reads every file whose row is marked unread; with a writer, what is new is stored. Rows of others are not touched. */
  async run(writer: PackWriter | undefined): Promise<void> {
    for (;;) {
      const unread = await unreadIn(this.#table, this.#options.pace);
      if (unread.files === 0) return;
      const contested = await this.#readMany(unread, writer);
      for (const { directory, name } of contested) {
        if (this.#table.has(directory)) await this.#readWithCare(directory, name, writer);
        await this.#options.pace();
      }
      // What had been a file may be a directory now, with files of its own.
      await this.#walk.settle();
    }
  }

  // ── many at once ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Returns the files that were not settled. */
  async #readMany(unread: Unread, writer: PackWriter | undefined): Promise<readonly FilePlace[]> {
    const { files, bytes } = unread;
    const { threads, objects } = this.#options;
    const isMuch = (much: typeof forHelper) => files >= much.files || bytes >= much.bytes;
    if (threads && isMuch(forNewHelper)) prepareHelpers();
    const helped = threads && isMuch(isHelperReady() ? forHelper : forNewHelper);
    const plan = await planReading(this.#table, unread, this.#options.pace);
    const claims = helped && writer ? await shareClaims(objects, files + unread.pieces, this.#options.pace) : undefined;
    const lookedAt = this.#options.now();
    await this.#runLanes(plan, writer, claims, helped);
    const contested: FilePlace[] = [];
    for (let item = 0; item < plan.results.length; item++) {
      if (item % itemsBetweenPauses === 0) await this.#options.pace();
      const at = item * itemWords;
      if (plan.items[at + 2] !== wholeFile) continue;
      const directory = plan.items[at] as number;
      const index = plan.items[at + 1] as number;
      if (plan.results[item] === outcomes.read) this.#noteChange(directory);
      else
        contested.push({
          directory,
          name: this.#table.name(directory, this.#table.rows(directory) + index * rowBytes),
        });
    }
    const young: LargeFile[] = [];
    for (const file of plan.large) {
      if (file.items.some((item) => plan.results[item] !== outcomes.read)) contested.push(file);
      else if (isSettled(this.#lookOf(file.row), lookedAt)) await this.#takeInLarge(file, plan.digests, true, writer);
      else young.push(file);
    }
    if (young.length > 0) contested.push(...(await this.#confirm(young, unread, plan.digests, writer, helped)));
    return contested;
  }

  /** Reads young large files once more: what is the same both times stood there whole. */
  async #confirm(
    young: readonly LargeFile[],
    unread: Unread,
    digests: Buffer,
    writer: PackWriter | undefined,
    helped: boolean,
  ): Promise<readonly FilePlace[]> {
    for (const { row } of young) await this.#quiet(this.#table.mtime(row));
    const wanted = new Set(young.map(({ row }) => row));
    const plan = await planReading(this.#table, unread, this.#options.pace, wanted);
    await this.#runLanes(plan, undefined, undefined, helped);
    const contested: FilePlace[] = [];
    const before = new Map(young.map((file) => [file.row, file]));
    for (const again of plan.large) {
      const first = before.get(again.row) as LargeFile;
      const isRead = again.items.every((item) => plan.results[item] === outcomes.read);
      if (isRead && idsOf(first, digests).equals(idsOf(again, plan.digests))) {
        await this.#takeInLarge(first, digests, false, writer);
      } else contested.push(again);
    }
    return contested;
  }

  async #runLanes(plan: ReadPlan, writer: PackWriter | undefined, claims: SharedClaims | undefined, helped: boolean) {
    const { root, rootPath, pace, signal } = this.#options;
    const counters = new Int32Array(new SharedArrayBuffer(readCounters.words * 4));
    const job: ReadJob = {
      items: plan.items.buffer as SharedArrayBuffer,
      batches: plan.batches.buffer as SharedArrayBuffer,
      outcomes: plan.results.buffer as SharedArrayBuffer,
      digests: plan.digests.buffer as SharedArrayBuffer,
      counters: counters.buffer,
    };
    const intake = new Intake(writer, counters);
    const others = (helped ? takeHelpers() : []).slice(0, lanesMax - 1).map((helper, i) =>
      helper.run(
        {
          kind: "read",
          table: this.#table.share(),
          job,
          root: { path: rootPath, dev: root.dev, ino: root.ino },
          claims: claims?.buffer,
          bytesRead: this.#laneBytes.buffer,
          lane: i + 1,
        },
        (block) => {
          intake.receive(block);
        },
      ),
    );
    try {
      const own = new BlockBuilder((block) => {
        intake.take(block);
      });
      const sink = writer && this.#sink(writer, claims, own);
      const lane = readFiles(this.#table, root, this.#reader, sink, job);
      // Whatever ends this loop early closes what the lane has open.
      for (const _ of lane) {
        await intake.ready();
        await writer?.ready();
        await pace();
      }
      own.close();
    } catch (error) {
      Atomics.store(counters, readCounters.stop, 1);
      throw error;
    } finally {
      if (signal?.aborted) Atomics.store(counters, readCounters.stop, 1);
      Atomics.notify(counters, readCounters.bytesInFlight);
      await Promise.all(others);
      this.#laneBytesBefore += this.#laneBytes.reduce((sum, bytes) => sum + bytes, 0);
      this.#laneBytes.fill(0);
    }
    signal?.throwIfAborted();
    await intake.ready();
  }

  /** With claims several threads store; without, the writer itself knows what it has. */
  #sink(writer: PackWriter, claims: Claims | undefined, own: BlockBuilder): ObjectSink {
    if (claims === undefined) return writer.sink;
    return claimingSink(claims, (id, bytes) => {
      own.add(id, bytes);
    });
  }

  async #takeInLarge(
    file: LargeFile,
    digests: Buffer,
    settled: boolean,
    writer: PackWriter | undefined,
  ): Promise<void> {
    const bytes = idsOf(file, digests);
    const ids: ObjectId[] = [];
    for (let at = 0; at < bytes.length; at += 32) ids.push(bytes.toString("hex", at, at + 32));
    const list = encodePieces(file.size, ids);
    const id = objectIdOf(list);
    await writer?.add(id, list);
    takeIn(this.#table, file.row, this.#lookOf(file.row), Buffer.from(id, "hex"), settled);
    this.#noteChange(file.directory);
  }

  #lookOf(row: number): Look {
    const table = this.#table;
    return {
      mode: table.mode(row),
      size: table.size(row),
      mtimeMs: table.mtime(row),
      ctimeMs: table.ctime(row),
      ino: table.ino(row),
      dev: 0,
    };
  }

  #noteChange(directory: number): void {
    this.#table.setDirectoryFlags(directory, 0, directoryFlags.encoded | directoryFlags.present);
  }

  /** Waits until the last write is a moment ago, as far as this capture may still wait. */
  async #quiet(mtimeMs: number): Promise<void> {
    const ageMs = Math.max(0, this.#options.now() - mtimeMs);
    const waitMs = Math.min(quietMs - ageMs, this.#waitLeftMs);
    if (waitMs <= 0) return;
    this.#waitLeftMs -= waitMs;
    await delay(waitMs);
    await this.#options.pace();
  }

  // ── one with care ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #readWithCare(directory: number, name: string, writer: PackWriter | undefined): Promise<void> {
    const walk = this.#walk;
    for (let reads = 0; reads < readsMax; reads++) {
      let handle: Directory;
      try {
        handle = walk.directories.get(directory);
      } catch (error) {
        walk.assertLosable(error, directory);
        walk.lose(directory);
        return;
      }
      const found = walk.look(directory, name);
      walk.replace(directory, name, found);
      if (found?.kind !== "file") return;
      const outcome = await this.#attempt(handle, directory, name, found.look, writer);
      if (outcome === "read") return;
      if (outcome !== "changed") {
        walk.replace(directory, name, { kind: "omitted", class: outcome });
        return;
      }
      await this.#options.pace();
    }
    walk.replace(directory, name, { kind: "omitted", class: "unstable" });
  }

  async #attempt(
    handle: Directory,
    directory: number,
    name: string,
    look: Look,
    writer: PackWriter | undefined,
  ): Promise<"read" | "changed" | OmissionClass> {
    const row = this.#walk.rowOf(directory, name);
    if (row === undefined) return "changed";
    if (look.size > pieceBytes) return this.#attemptLarge(handle, directory, name, row, look, writer);
    const expected = { size: look.size, is: (opened: Look) => isSameLook(opened, look) };
    const read = this.#reader.small(handle, name, expected, writer?.sink, this.#table.earlier(row));
    if (read.kind === "unreadable") {
      assertOwnMeans(read.error, name);
      return "unreadable";
    }
    if (read.kind !== "read") return "changed";
    takeIn(this.#table, row, read.look, read.digest, read.settled);
    this.#noteChange(directory);
    await writer?.ready();
    return "read";
  }

  async #attemptLarge(
    handle: Directory,
    directory: number,
    name: string,
    row: number,
    look: Look,
    writer: PackWriter | undefined,
  ): Promise<"read" | "changed" | OmissionClass> {
    const { now, pace } = this.#options;
    const count = pieceCount(look.size);
    const isExpected = (opened: Look): boolean => isSameLook(opened, look);
    const pass = async (sink: ObjectSink | undefined): Promise<Buffer | "changed" | "unreadable"> => {
      const digests = Buffer.alloc(count * 32);
      const pieces = this.#reader.pieces(handle, name, isExpected, { first: 0, count, digests }, sink);
      try {
        for (let step = pieces.next(); ; step = pieces.next()) {
          if (step.done === true) return step.value === "read" ? digests : step.value;
          await writer?.ready();
          await pace();
        }
      } finally {
        // An abort comes between two pieces, while the file is open.
        pieces.return("changed");
      }
    };
    const lookedAt = now();
    const digests = await pass(writer?.sink);
    if (typeof digests === "string") return digests;
    const settled = isSettled(look, lookedAt);
    if (!settled) {
      await this.#quiet(look.mtimeMs);
      const again = await pass(undefined);
      if (typeof again === "string") return again;
      if (!again.equals(digests)) return "changed";
    }
    await this.#takeInLarge({ directory, name, row, size: look.size, place: 0, items: [] }, digests, settled, writer);
    this.#table.setLook(row, looks.same);
    return "read";
  }
}

/** Everything that may be relied on in the store counts as claimed already. */
async function shareClaims(
  objects: ObjectStore,
  expected: number,
  pace: () => Promise<void> | undefined,
): Promise<SharedClaims> {
  // Packs that others publish meanwhile make the list longer; what is left out is stored twice at worst.
  const { digests } = objects;
  const claims = SharedClaims.forObjects(digests.length / 32 + expected);
  for (let at = 0; at < digests.length; at += 32) {
    if (objects.hasAt(digests, at)) claims.claim(digests.subarray(at, at + 32));
    if ((at / 32) % itemsBetweenPauses === 0) await pace();
  }
  return claims;
}

/** Takes blocks of all lanes to the writer, one after the other, and tells the lanes when there is room again. */
class Intake {
  readonly #writer: PackWriter | undefined;
  readonly #counters: Int32Array;
  #taken: Promise<void> = Promise.resolve();

  constructor(writer: PackWriter | undefined, counters: Int32Array) {
    this.#writer = writer;
    this.#counters = counters;
  }

  /** From this thread. */
  take(block: EncodedBlock): void {
    const wait = this.#writer?.addBlock(block);
    if (wait === undefined) return;
    this.#taken = this.#taken.then(() => wait);
    this.#taken.catch(() => undefined);
  }

  /** From another thread. */
  receive(block: EncodedBlock): void {
    this.#taken = this.#taken.then(async () => {
      await this.#writer?.addBlock(block);
      Atomics.sub(this.#counters, readCounters.bytesInFlight, block.stored.length);
      Atomics.notify(this.#counters, readCounters.bytesInFlight);
    });
    this.#taken.catch(() => undefined);
  }

  /** Rejects with what kept a block from being stored. */
  ready(): Promise<void> {
    return this.#taken;
  }
}
