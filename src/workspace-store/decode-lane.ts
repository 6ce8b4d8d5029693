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
  /** Where decoded blocks go. The writing thread says where in it, and does not look before the answer. */
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
  readonly stored: Uint8Array;
  readonly rawLength: number;
  /** Where in the shared memory its raw bytes go. */
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
  const out = Buffer.from(memory);
  return new Promise((resolve) => {
    port.on("message", ({ number, blocks }: DecodeBatch) => {
      const failed = blocks.flatMap((block) => decode(block, out));
      port.postMessage({ number, failed } satisfies DecodeAnswer);
    });
    port.on("close", resolve);
  });
}

function decode({ codec, stored, rawLength, at, ids, ranges }: BlockToDecode, out: Buffer): ObjectId[] {
  const raw = inflated(codec, stored, rawLength);
  if (raw?.length !== rawLength) return [...ids];
  out.set(raw, at);
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
