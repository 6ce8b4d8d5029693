/**
 * The part a helper thread takes in a materialization: it decodes blocks into memory it shares with the thread that writes,
 * and checks every object it was asked for. What fails is only named: the one who asked reads it again the careful way.
 */
import type { MessagePort } from "node:worker_threads";
import { brotliDecompressSync } from "node:zlib";
import { objectIdOf } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { codecs, inflateOptions } from "./pack-codec.js";

export interface DecodeRequest {
  readonly kind: "decode";
  /** Where stored blocks lie and decoded ones go. The writing thread says where in it, and looks at neither before the answer. */
  readonly memory: SharedArrayBuffer;
  /** Batches come by it and answers go by it; when it closes, the phase is over. */
  readonly port: MessagePort;
}

export interface DecodeBatch {
  readonly number: number;
  readonly blocks: readonly BlockToDecode[];
}
export interface BlockToDecode {
  readonly codec: number;
  /** Where in the shared memory its stored bytes lie. */
  readonly from: number;
  readonly storedLength: number;
  readonly rawLength: number;
  /** Where its raw bytes go. */
  readonly at: number;
  readonly ids: readonly ObjectId[];
  /** Start and end of each object in the raw bytes, in turn. */
  readonly ranges: readonly number[];
}

export interface DecodeAnswer {
  readonly number: number;
  /** Objects whose bytes are not what their id says. */
  readonly failed: readonly ObjectId[];
}

/** Resolves when the other side closes the port. */
export function decodeBatches({ memory, port }: DecodeRequest): Promise<void> {
  const shared = Buffer.from(memory);
  return new Promise((resolve) => {
    port.on("message", ({ number, blocks }: DecodeBatch) => {
      const failed = blocks.flatMap((block) => decode(block, shared));
      port.postMessage({ number, failed } satisfies DecodeAnswer);
    });
    port.on("close", resolve);
  });
}

function decode({ codec, from, storedLength, rawLength, at, ids, ranges }: BlockToDecode, shared: Buffer): ObjectId[] {
  const raw = inflated(codec, shared.subarray(from, from + storedLength), rawLength);
  if (raw?.length !== rawLength) return [...ids];
  shared.set(raw, at);
  return ids.filter((id, i) => objectIdOf(raw.subarray(ranges[2 * i], ranges[2 * i + 1])) !== id);
}

function inflated(codec: number, stored: Uint8Array, rawLength: number): Uint8Array | undefined {
  if (codec === codecs.raw) return stored;
  if (codec !== codecs.brotli) return undefined;
  try {
    return brotliDecompressSync(stored, inflateOptions(rawLength));
  } catch {
    return undefined;
  }
}
