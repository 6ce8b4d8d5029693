/**
 * Blocks of files with their bytes at hand, in order, decoded ahead of their use: by a helper thread that also verifies
 * them, where there is one and enough to do, else by the object store on the thread pool.
 *
 * A helper is an accelerator and nothing else. What it does not give, because it died or a byte is wrong, has no bytes
 * here, and whoever asked reads it from the object store, which knows of spare copies and says what is damaged.
 */
import { MessageChannel } from "node:worker_threads";
import type { MessagePort } from "node:worker_threads";
import { raceAbort } from "../core/index.js";
import type { FileEntry } from "./content.js";
import type { BlockToDecode, DecodeAnswer, DecodeBatch, DecodeRequest } from "./decode-lane.js";
import { prepareHelpers, takeHelper } from "./lanes.js";
import type { Helper } from "./lanes.js";
import type { ObjectStore } from "./object-store.js";
import { pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { readAhead } from "./stored-order.js";
import type { BlockOfFiles } from "./stored-order.js";

/** Below this a helper costs more than it gives. */
const helpedBytesMin = 4 * 1024 * 1024;
/** One batch: room for the largest object of a small file. */
const slotBytes = pieceBytes;
const slots = 8;
/** Reading over a gap of this length is cheaper than reading twice: between two blocks lies a table. */
const gapMax = 16 * 1024;

export interface LoadedBlock<F> {
  readonly files: readonly F[];
  /** The verified bytes of a file of it; undefined where they must be read. Valid until the next block is asked for. */
  readonly bytesOf: (file: F) => Buffer | undefined;
}

interface Loadable {
  readonly entry: FileEntry;
}

/** What is asked of a helper thread; resolves when its part is done or it died. */
export type DecodingHelper = Pick<Helper, "run">;

/** To be called some time before `helperFor`, for one to be ready by then. */
export function prepareHelperFor(bytes: number): void {
  if (bytes >= helpedBytesMin) prepareHelpers();
}

/** A helper thread, where there is one and enough to do. It must be handed to `loadedBlocks`. */
export const helperFor = (bytes: number): DecodingHelper | undefined =>
  bytes >= helpedBytesMin ? takeHelper() : undefined;

/** Rejects with the signal's reason when it aborts. */
export async function* loadedBlocks<F extends Loadable>(
  objects: ObjectStore,
  blocks: readonly BlockOfFiles<F>[],
  helper: DecodingHelper | undefined,
  signal?: AbortSignal,
): AsyncGenerator<LoadedBlock<F>> {
  if (helper === undefined) {
    for (const { files } of readAhead(objects, blocks)) yield { files, bytesOf: () => undefined };
    return;
  }
  const decoding = new Decoding(objects, blocks, helper);
  try {
    yield* decoding.run(signal);
  } finally {
    decoding.close();
  }
}

interface Batch<F> {
  readonly slot: number;
  readonly blocks: readonly BlockOfFiles<F>[];
  /** Where in the shared memory an object lies. */
  readonly ranges: ReadonlyMap<ObjectId, readonly [start: number, end: number]>;
  /** The ids that did not come out right; undefined when none did. */
  readonly failed: Promise<readonly ObjectId[] | undefined>;
}

class Decoding<F extends Loadable> {
  readonly #objects: ObjectStore;
  readonly #blocks: readonly BlockOfFiles<F>[];
  /** Of each slot one half takes stored bytes, the other raw ones. */
  readonly #memory = new SharedArrayBuffer(2 * slots * slotBytes);
  readonly #shared = Buffer.from(this.#memory);
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, (failed: readonly ObjectId[] | undefined) => void>();
  #next = 0;
  #sent = 0;
  #ended = false;

  constructor(objects: ObjectStore, blocks: readonly BlockOfFiles<F>[], helper: DecodingHelper) {
    this.#objects = objects;
    this.#blocks = blocks;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on("message", ({ number, failed }: DecodeAnswer) => {
      this.#waiting.get(number)?.(failed);
      this.#waiting.delete(number);
    });
    const request: DecodeRequest = { kind: "decode", memory: this.#memory, port: port2 };
    void helper.run(request, undefined, [port2]).then(() => {
      // Over, or the helper died: what it still owed is read the other way.
      this.#ended = true;
      for (const give of this.#waiting.values()) give(undefined);
      this.#waiting.clear();
    });
  }

  async *run(signal: AbortSignal | undefined): AsyncGenerator<LoadedBlock<F>> {
    const batches: Batch<F>[] = [];
    const fill = (slot: number) => {
      const batch = this.#start(slot);
      if (batch) batches.push(batch);
    };
    for (let slot = 0; slot < slots; slot++) fill(slot);
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
      const { slot, ranges } = batch;
      const failed = await raceAbort(batch.failed, signal);
      const bytesOf = ({ entry: { id } }: F) => {
        const range = failed === undefined || failed.includes(id) ? undefined : ranges.get(id);
        return range && Buffer.from(this.#memory, range[0], range[1] - range[0]);
      };
      for (const { files } of batch.blocks) yield { files, bytesOf };
      fill(slot);
    }
  }

  close(): void {
    this.#port.close();
  }

  /** Sends the next blocks that fit into a slot; undefined when none are left. */
  #start(slot: number): Batch<F> | undefined {
    const blocks: BlockOfFiles<F>[] = [];
    const ranges = new Map<ObjectId, readonly [number, number]>();
    const wanted: WantedBlock[] = [];
    const end = (2 * slot + 2) * slotBytes;
    let at = end - slotBytes;
    for (; this.#next < this.#blocks.length; this.#next++) {
      const block = this.#blocks[this.#next] as BlockOfFiles<F>;
      const found = this.#objects.locate((block.files[0] as F).entry.id)?.block;
      if (found !== undefined && found.rawLength <= slotBytes) {
        if (at + found.rawLength > end) break;
        const { codec, packId, offset, storedLength, rawLength } = found;
        const [ids, places] = this.#objectsOf(block, found.ordinal);
        ids.forEach((id, i) => ranges.set(id, [at + (places[2 * i] as number), at + (places[2 * i + 1] as number)]));
        if (ids.length > 0) wanted.push({ codec, packId, offset, storedLength, rawLength, at, ids, ranges: places });
        at += rawLength;
      }
      blocks.push(block);
    }
    if (blocks.length === 0) return undefined;
    return { slot, blocks, ranges, failed: this.#decode(wanted, 2 * slot * slotBytes) };
  }

  /** The small files' objects in a block, each once, and where each starts and ends. */
  #objectsOf({ files }: BlockOfFiles<F>, ordinal: number): [ids: ObjectId[], ranges: number[]] {
    const ids: ObjectId[] = [];
    const ranges: number[] = [];
    for (const { entry } of files) {
      if (entry.size > pieceBytes || entry.id === ids.at(-1)) continue;
      const place = this.#objects.locate(entry.id);
      if (place?.block.ordinal !== ordinal) continue;
      ids.push(entry.id);
      ranges.push(place.start, place.end);
    }
    return [ids, ranges];
  }

  /** Puts the stored bytes at `start` and has them decoded. */
  async #decode(wanted: readonly WantedBlock[], start: number) {
    const blocks: BlockToDecode[] = [];
    let to = start;
    for (const run of adjacent(wanted)) {
      if (this.#ended) return undefined;
      const { packId, offset: first } = run[0] as WantedBlock;
      const last = run.at(-1) as WantedBlock;
      const bytes = await this.#objects.readStored(packId, first, last.offset + last.storedLength - first);
      if (bytes === undefined) return undefined;
      for (const { offset, packId: _, ...block } of run) {
        const { storedLength } = block;
        if (to + storedLength > start + slotBytes) return undefined;
        this.#shared.set(bytes.subarray(offset - first, offset - first + storedLength), to);
        blocks.push({ ...block, from: to });
        to += storedLength;
      }
    }
    if (this.#ended) return undefined;
    const number = this.#sent++;
    return new Promise<readonly ObjectId[] | undefined>((resolve) => {
      this.#waiting.set(number, resolve);
      this.#port.postMessage({ number, blocks } satisfies DecodeBatch);
    });
  }
}

interface WantedBlock extends Omit<BlockToDecode, "from"> {
  readonly packId: string;
  readonly offset: number;
}

/** Runs of blocks that lie close enough to be read at once. */
function adjacent(blocks: readonly WantedBlock[]): WantedBlock[][] {
  const runs: WantedBlock[][] = [];
  for (const block of blocks) {
    const last = runs.at(-1)?.at(-1);
    const gap = last?.packId === block.packId ? block.offset - last.offset - last.storedLength : -1;
    if (gap >= 0 && gap <= gapMax) runs.at(-1)?.push(block);
    else runs.push([block]);
  }
  return runs;
}
