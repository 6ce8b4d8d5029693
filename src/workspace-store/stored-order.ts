/** Files in the order their bytes lie in the store, so that each block is decoded once, and ahead of its use. */
import type { FileEntry } from "./content.js";
import type { ObjectStore } from "./object-store.js";
import { blockObjectsMax } from "./pack-codec.js";

/** Files whose ids lie in one block, in its order: equal ids follow each other. */
export interface BlockOfFiles<F> {
  readonly files: readonly F[];
  readonly bytes: number;
}

/** Raw bytes of blocks that are being decoded or wait decoded; below what the object store keeps of them. */
const aheadBytesMax = 4 * 1024 * 1024;
const aheadBlocksMax = 96;

/** `pace` lets others run between steps. */
export async function inStoredOrder<F extends { readonly entry: FileEntry }>(
  objects: ObjectStore,
  files: readonly F[],
  pace: () => Promise<void> | undefined,
): Promise<readonly BlockOfFiles<F>[]> {
  const blocks = new Map<number, { files: F[]; slots: number[]; bytes: number }>();
  for (const file of files) {
    await pace();
    const place = objects.place(file.entry.id) ?? -1;
    const number = Math.floor(place / blockObjectsMax);
    let block = blocks.get(number);
    if (block === undefined) blocks.set(number, (block = { files: [], slots: [], bytes: 0 }));
    block.files.push(file);
    block.slots.push(place);
    block.bytes += file.entry.size;
  }
  // Native and without a comparison function: a million of them sort in the time of one slice.
  const numbers = Float64Array.from(blocks.keys()).sort();
  const ordered: BlockOfFiles<F>[] = [];
  for (const number of numbers) {
    await pace();
    const block = blocks.get(number);
    if (block !== undefined) ordered.push({ files: bySlot(block.files, block.slots), bytes: block.bytes });
  }
  return ordered;
}

function bySlot<F>(files: readonly F[], slots: readonly number[]): readonly F[] {
  const isSorted = slots.every((slot, i) => i === 0 || (slots[i - 1] as number) <= slot);
  if (isSorted) return files;
  const order = files.map((_, i) => i).sort((a, b) => (slots[a] as number) - (slots[b] as number));
  return order.map((i) => files[i] as F);
}

/** The same blocks, each yielded with those that follow it being loaded already. */
export function* readAhead<F extends { readonly entry: FileEntry }>(
  objects: ObjectStore,
  blocks: readonly BlockOfFiles<F>[],
): Generator<BlockOfFiles<F>> {
  let ahead = 0;
  let bytes = 0;
  for (const [i, block] of blocks.entries()) {
    for (let next = blocks[ahead]; next !== undefined && ahead < i + aheadBlocksMax; next = blocks[++ahead]) {
      if (ahead > i && bytes + next.bytes > aheadBytesMax) break;
      bytes += next.bytes;
      const first = next.files[0];
      if (first) objects.prefetch(first.entry.id);
    }
    yield block;
    bytes -= block.bytes;
  }
}
