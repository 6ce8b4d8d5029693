/**
 * Records too large for the ledger: their bytes in blobs, a stub in the ledger. Blobs are written before the stub and
 * verified by length and digest on every read. Blobs that no stub names (a crash between the two) are ignored and go with
 * the session.
 */
import { LooprigError, isLooprigError, sha256Hex } from "../core/index.js";
import type { Abortable, EventId, SessionId } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import type { SessionEvent } from "./events.js";
import { blobOf } from "./keys.js";
import { encodeEvent, encodeStub } from "./record.js";
import type { OutOfLine } from "./record.js";
import { Misfit } from "./shape.js";

export const inlineBytesMax = 64 * 1024;
export const partBytesMax = 16 * 1024 * 1024;
/** Far below what one string can hold, far above what a restore of a million paths records. */
export const recordBytesMax = 256 * 1024 * 1024;

/** The body the ledger gets for an event. When it returns, what lies outside the ledger is durable. */
export async function storeRecord(blobs: Blobs, event: SessionEvent, options: Abortable): Promise<Uint8Array> {
  const record = encodeEvent(event);
  if (record.length <= inlineBytesMax) return record;
  if (record.length > recordBytesMax) throw tooLarge(event, record.length);
  const blob = blobOf(event.sessionId, event.id);
  const parts = Math.ceil(record.length / partBytesMax);
  for (let part = 0; part < parts; part++) {
    const bytes = record.subarray(part * partBytesMax, (part + 1) * partBytesMax);
    // The name is random and ours alone: one that exists already is this very blob, whose first answer was lost.
    await blobs.put(`${blob}.${part}`, [bytes], options);
  }
  return encodeStub(event, { blob, bytes: record.length, parts, sha256: sha256Hex(record) });
}

/** The bytes a stub names. A `Misfit` when they are missing or not the ones that were written. */
export async function fetchRecord(
  blobs: Blobs,
  sessionId: SessionId,
  event: EventId,
  out: OutOfLine,
  options: Abortable,
): Promise<Uint8Array> {
  // A stub is data from outside: it may neither point elsewhere nor make the reader take any amount of memory.
  if (out.blob !== blobOf(sessionId, event) || out.bytes > recordBytesMax || out.parts > out.bytes) {
    throw new Misfit("damaged", "the record.out", "the event's own blob within the limits");
  }
  const chunks: Uint8Array[] = [];
  let left = out.bytes;
  for (let part = 0; part < out.parts; part++) {
    const chunk = await fetchPart(blobs, `${out.blob}.${part}`, left + 1, options);
    chunks.push(chunk);
    left -= chunk.length;
    if (left < 0) break;
  }
  const record = Buffer.concat(chunks);
  if (record.length !== out.bytes || sha256Hex(record) !== out.sha256) {
    throw new Misfit("damaged", "the large record", "what was written: its length or digest is another");
  }
  return record;
}

async function fetchPart(blobs: Blobs, key: string, length: number, options: Abortable): Promise<Uint8Array> {
  try {
    return await blobs.get(key, { length, ...options });
  } catch (error) {
    if (isLooprigError(error, "blob.missing")) throw new Misfit("damaged", "the large record", "there");
    throw error;
  }
}

function tooLarge(event: SessionEvent, bytes: number): LooprigError {
  const { sessionId, type } = event;
  return new LooprigError(
    "journal.record_too_large",
    `Cannot journal an event of type "${type}" in session "${sessionId}": its record has ${bytes} bytes, wanted at most ${recordBytesMax}; do the work in smaller steps`,
    { sessionId, type, bytes, bytesMax: recordBytesMax },
  );
}
