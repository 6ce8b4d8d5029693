/** What a capture or a materialization and its helper threads say to each other. Everything large is shared or handed over, never copied. */
import type { DecodeRequest } from "./decode-lane.js";
import type { LookJob } from "./look-lane.js";
import type { EncodedBlock } from "./pack-codec.js";
import type { ReadJob } from "./read-lane.js";
import type { SharedTable } from "./tree-table.js";

export interface LookRequest {
  readonly kind: "look";
  readonly table: SharedTable;
  readonly job: LookJob;
}

export interface ReadRequest {
  readonly kind: "read";
  readonly table: SharedTable;
  readonly job: ReadJob;
  /** The root, and which directory it must be. */
  readonly root: { readonly path: string; readonly dev: bigint; readonly ino: bigint };
  /** Absent while only hashing. */
  readonly claims: SharedArrayBuffer | undefined;
  /** Float64 per lane: bytes read so far. */
  readonly bytesRead: SharedArrayBuffer;
  readonly lane: number;
}

export type LaneRequest = LookRequest | ReadRequest | DecodeRequest;

export type LaneReply =
  | { readonly kind: "block"; readonly block: EncodedBlock }
  /** Whatever the lane did not do is left to others. */
  | { readonly kind: "done" };
