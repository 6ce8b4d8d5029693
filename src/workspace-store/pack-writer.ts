/**
 * Gathers the new objects of one capture into packs and publishes them: pack, then index where it has one, then memory. Nothing else names
 * an object before its pack is durable, so a crash leaves at most a pack without an index, which the next reader adopts.
 *
 * Bounded: one open block, one open pack, one pack being published; whoever adds waits beyond that.
 */
import { raceAbort, yieldToEventLoop } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { BlockBuilder } from "./block-builder.js";
import { DeltaBuilder } from "./delta-builder.js";
import type { ObjectSink } from "./file-reader.js";
import { indexKey, packKey } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import type { ObjectId } from "./object-ids.js";
import { bareBytesMax, encodeIndex, PackBuilder, saltBlock } from "./pack-codec.js";
import type { EncodedBlock } from "./pack-codec.js";

/**
 * A pack is closed when its blocks reach this many stored bytes, or this many raw ones: so much is lost with a killed capture.
 * Or this many objects: an index is made, decoded and taken in without a pause.
 */
const packBytes = 16 * 1024 * 1024;
const packRawBytes = 64 * 1024 * 1024;
const packObjects = 16 * 1024;

export class PackWriter {
  readonly #blobs: Blobs;
  readonly #objects: ObjectStore;
  readonly #signal: AbortSignal | undefined;
  /** Everything handed to `add`: present or about to be. */
  readonly #added = new Set<ObjectId>();
  readonly #builder = new BlockBuilder((block) => {
    this.#push(block);
  });
  readonly #deltas: DeltaBuilder;
  #pack: PackBuilder | undefined;
  #storedLength = 0;
  #rawLength = 0;
  #objectCount = 0;
  #publishing: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  #bytesStored = 0;

  /** Adds what is not there yet. Whoever uses it awaits `ready` now and then. */
  readonly sink: ObjectSink = {
    add: (digest, bytes, earlier) => {
      if (this.#objects.hasAt(digest, 0)) return;
      this.#waiting = this.add(digest.toString("hex"), bytes, earlier?.toString("hex")) ?? this.#waiting;
    },
  };

  /** An abort of `signal` ends the waits of those who add; what is being written is written all the same. */
  constructor(blobs: Blobs, objects: ObjectStore, signal?: AbortSignal) {
    this.#signal = signal;
    this.#blobs = blobs;
    this.#objects = objects;
    this.#deltas = new DeltaBuilder(objects);
  }

  /** Bytes of the packs and indexes published so far. */
  get bytesStored(): number {
    return this.#bytesStored;
  }

  /** Whether the object need not be added: the index has it or this writer does. */
  has(id: ObjectId): boolean {
    return this.#added.has(id) || this.#objects.has(id);
  }

  /**
   * Takes a copy of the bytes. `earlier` may name an object that is much like it. A promise is returned only when the caller
   * has to wait.
   */
  add(id: ObjectId, bytes: Uint8Array, earlier?: ObjectId): Promise<void> | undefined {
    if (this.has(id)) return undefined;
    this.#added.add(id);
    if (earlier !== undefined && this.#deltas.offer(id, bytes, earlier)) return undefined;
    this.#builder.add(id, bytes);
    return this.#closeFullPack();
  }

  /** Takes a block that was put together elsewhere. A promise is returned only when the caller has to wait. */
  addBlock(block: EncodedBlock): Promise<void> | undefined {
    this.#push(block);
    return this.#closeFullPack();
  }

  /** What whoever fed the sink has to wait for. */
  ready(): Promise<void> | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  /** Publishes what is left; afterwards every object added is durable and in the index. An abort ends the wait for that. */
  async flush(signal?: AbortSignal): Promise<void> {
    await this.#deltas.finish(
      (block) => {
        this.#push(block);
      },
      (id, bytes) => {
        this.#builder.add(id, bytes);
      },
    );
    this.#builder.close();
    // Its failure is that of the last.
    void this.#closePack(signal);
    await raceAbort(this.#publishing, signal);
  }

  #push(block: EncodedBlock): void {
    this.#pack ??= new PackBuilder();
    this.#pack.add(block);
    this.#storedLength += block.stored.length;
    this.#rawLength += block.rawLength;
    this.#objectCount += block.ids.length;
  }

  #closeFullPack(): Promise<void> | undefined {
    const isFull =
      this.#storedLength >= packBytes || this.#rawLength >= packRawBytes || this.#objectCount >= packObjects;
    if (!isFull) return undefined;
    const wait = raceAbort(this.#closePack(), this.#signal);
    // Whoever fed the sink may have ended by then.
    wait.catch(() => undefined);
    return wait;
  }

  /** Resolves when the pack before this one is published. */
  #closePack(signal?: AbortSignal): Promise<void> {
    const before = this.#publishing;
    const pack = this.#pack;
    if (pack === undefined) return before;
    this.#pack = undefined;
    this.#storedLength = 0;
    this.#rawLength = 0;
    this.#objectCount = 0;
    this.#publishing = before.then(() => this.#publish(pack, signal));
    // Its failure is met by the next pack and by `flush`.
    this.#publishing.catch(() => undefined);
    return before;
  }

  async #publish(pack: PackBuilder, signal: AbortSignal | undefined): Promise<void> {
    let { chunks, rows } = pack.pack();
    // These very bytes lie in a pack that a collection is about to remove: here they get another name (condemned.ts).
    if (this.#objects.isCondemnedPack(rows.packId)) {
      pack.add(saltBlock());
      ({ chunks, rows } = pack.pack());
    }
    // Of each stretch the event loop gets to know the end: closing the pack, encoding its index, taking it in.
    await yieldToEventLoop();
    const index = rows.packBytes > bareBytesMax ? encodeIndex(rows) : undefined;
    let created = await this.#blobs.put(packKey(rows.packId), chunks, { signal });
    // A pack of that name that is already there holds these very bytes, unless it was damaged since.
    if (!created && !(await this.#objects.isPackSound(rows.packId, { signal }))) {
      await this.#blobs.delete(packKey(rows.packId), { signal });
      created = await this.#blobs.put(packKey(rows.packId), chunks, { signal });
    }
    if (created) this.#bytesStored += rows.packBytes;
    if (index !== undefined && (await this.#blobs.put(indexKey(rows.packId), [index], { signal })))
      this.#bytesStored += index.length;
    this.#objects.addPack(rows);
  }
}
