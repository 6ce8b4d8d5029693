/** What lies in the store: every pack with its objects, and what stands there without its other half. */
import { pacer } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { packCopies } from "./collect-plan.js";
import type { PackCopies } from "./collect-plan.js";
import type { DigestTable } from "./digest-table.js";
import { indexKey, packKey } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { bareBytesMax } from "./pack-codec.js";

export interface Inventory {
  readonly packs: readonly PackCopies[];
  /** Indexes whose pack is gone, which prove nothing. */
  readonly strayIndexes: readonly { readonly key: string; readonly bytes: number }[];
  /** Of all blobs of the store. */
  readonly bytes: number;
}

/** Takes every object of the store into `ids`; those that are there already keep their numbers. */
export async function takeInventory(
  blobs: Blobs,
  objects: ObjectStore,
  ids: DigestTable,
  options: Abortable,
): Promise<Inventory> {
  const packs: PackCopies[] = [];
  const pace = pacer(options.signal);
  // Indexes before packs: an index is published after its pack, so the pack of a listed one is listed or gone.
  const indexes = await sizes(blobs, indexKey(""), options);
  const packSizes = await sizes(blobs, packKey(""), options);
  let bytes = [...indexes.values(), ...packSizes.values()].reduce((sum, size) => sum + size, 0);
  for (const prefix of ["roots/", "condemned/"]) {
    for (const size of (await sizes(blobs, prefix, options)).values()) bytes += size;
  }
  for (const packId of objects.packIds) {
    options.signal?.throwIfAborted();
    const packBytes = packSizes.get(packId);
    if (packBytes === undefined || (packBytes > bareBytesMax && !indexes.has(packId))) continue;
    const rows = await objects.rowsOf(packId);
    await pace();
    if (rows !== undefined) packs.push(packCopies(ids, rows, indexes.get(packId) ?? 0));
    await pace();
  }
  const strayIndexes = [...indexes]
    .filter(([packId]) => !packSizes.has(packId))
    .map(([packId, size]) => ({ key: indexKey(packId), bytes: size }));
  return { packs, strayIndexes, bytes };
}

async function sizes(blobs: Blobs, prefix: string, options: Abortable): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for await (const { key, size } of blobs.list(prefix, { signal: options.signal })) {
    found.set(key.slice(prefix.length), size);
  }
  return found;
}
