/** The blobs of memory storage: one byte array per key, copied in and out. */
import type { Abortable } from "../core/index.js";
import type { Blobs, StorageKey } from "./contracts.js";
import { checkCount, checkKey, checkPrefix, checkPut } from "./limits.js";
import type { MemoryGuard } from "./memory.js";
import { blobMissing } from "./refusals.js";

export function createMemoryBlobs(guard: MemoryGuard): Blobs {
  const blobs = new Map<StorageKey, Uint8Array>();

  return {
    async put(key, chunks, options) {
      checkPut(key, chunks);
      guard("blobs.put", options?.signal);
      if (blobs.has(key)) return false;
      blobs.set(key, new Uint8Array(Buffer.concat(chunks)));
      return true;
    },

    async get(key, options: Abortable & { readonly offset?: number; readonly length?: number } = {}) {
      const offset = options.offset ?? 0;
      checkKey(key);
      checkCount(key, "offset", offset, 0);
      if (options.length !== undefined) checkCount(key, "length", options.length, 0);
      guard("blobs.get", options.signal);
      const bytes = blobs.get(key);
      if (bytes === undefined) throw blobMissing(key);
      return bytes.slice(offset, options.length === undefined ? undefined : offset + options.length);
    },

    async stat(key, options) {
      checkKey(key);
      guard("blobs.stat", options?.signal);
      const bytes = blobs.get(key);
      return bytes === undefined ? undefined : { key, size: bytes.length };
    },

    async *list(prefix, options) {
      checkPrefix(prefix);
      guard("blobs.list", options?.signal);
      const keys = [...blobs.keys()].filter((key) => key.startsWith(prefix)).sort();
      for (const key of keys) {
        guard("blobs.list", options?.signal);
        const bytes = blobs.get(key);
        if (bytes !== undefined) yield { key, size: bytes.length };
      }
    },

    async delete(key, options) {
      checkKey(key);
      guard("blobs.delete", options?.signal);
      blobs.delete(key);
    },
  };
}
