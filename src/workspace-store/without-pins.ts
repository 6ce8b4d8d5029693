/** A storage as it would be without some pins, for asking what a store over it would collect. For dry runs: nothing is written. */
import type { Storage } from "../storage/index.js";

/** `pins` owns the names; this one has to know where they begin. */
const pinPrefix = ({ owner, id }: { readonly owner: string; readonly id: string }): string => `roots/${owner}/${id}/`;

export function withoutPins(
  storage: Storage,
  pins: readonly { readonly owner: string; readonly id: string }[],
): Storage {
  const hidden = new Set(pins.map(pinPrefix));
  const isHidden = (key: string): boolean => hidden.has(key.slice(0, key.lastIndexOf("/") + 1));
  const { blobs } = storage;
  return {
    ...storage,
    blobs: {
      ...blobs,
      async *list(prefix, options) {
        for await (const blob of blobs.list(prefix, options)) if (!isHidden(blob.key)) yield blob;
      },
    },
  };
}
