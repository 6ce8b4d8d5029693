/** The entry of a helper thread: takes its part of one phase of a capture or a materialization at a time. Started by `lanes.ts` only. */
import { parentPort } from "node:worker_threads";
import { Directory, nodeFileSystem } from "../core/index.js";
import { BlockBuilder } from "./block-builder.js";
import { SharedClaims } from "./claims.js";
import { decodeBatches } from "./decode-lane.js";
import { claimingSink, FileReader } from "./file-reader.js";
import type { LaneReply, LaneRequest, ReadRequest } from "./lane-messages.js";
import { lookAround } from "./look-lane.js";
import type { EncodedBlock } from "./pack-codec.js";
import { readCounters, readFiles } from "./read-lane.js";
import { lookerOf } from "./stamps.js";
import { TreeTable } from "./tree-table.js";

/** Bytes of blocks that may be on their way to the thread that stores them. */
const inFlightMax = 16 * 1024 * 1024;
const waitMs = 100;

const looker = lookerOf(nodeFileSystem);

parentPort?.on("message", (request: LaneRequest) => {
  if (request.kind === "decode") {
    void decodeBatches(request).then(() => {
      reply({ kind: "done" });
    });
    return;
  }
  try {
    if (request.kind === "look") {
      const lane = lookAround(TreeTable.attach(request.table), looker, request.job);
      while (lane.next().done !== true);
    } else read(request);
  } finally {
    reply({ kind: "done" });
  }
});

function read({ table, job, root, claims, bytesRead, lane }: ReadRequest): void {
  const counters = new Int32Array(job.counters);
  const progress = new Float64Array(bytesRead);
  using directory = Directory.open(nodeFileSystem, root.path);
  // Another root by now: the careful reading finds out and says so.
  if (directory.dev !== root.dev || directory.ino !== root.ino) return;
  const reader = new FileReader(nodeFileSystem, looker, Date.now);
  const builder = new BlockBuilder((block) => {
    waitForRoom(counters);
    send(block, counters);
  });
  const sink =
    claims === undefined
      ? undefined
      : claimingSink(new SharedClaims(claims), (id, bytes) => {
          builder.add(id, bytes);
        });
  const steps = readFiles(TreeTable.attach(table), directory, reader, sink, job);
  for (const _ of steps) {
    progress[lane] = reader.bytesRead;
    // Also between the pieces of one file. Leaving the loop closes what is open.
    if (Atomics.load(counters, readCounters.stop) !== 0) return;
  }
  progress[lane] = reader.bytesRead;
  builder.close();
}

function send(block: EncodedBlock, counters: Int32Array): void {
  const { stored } = block;
  // A small buffer may be part of a pool, which cannot be handed over.
  const own = stored.byteLength === stored.buffer.byteLength ? stored : Uint8Array.from(stored);
  Atomics.add(counters, readCounters.bytesInFlight, own.byteLength);
  reply({ kind: "block", block: { ...block, stored: own } }, [own.buffer as ArrayBuffer]);
}

function waitForRoom(counters: Int32Array): void {
  for (;;) {
    const inFlight = Atomics.load(counters, readCounters.bytesInFlight);
    if (inFlight < inFlightMax || Atomics.load(counters, readCounters.stop) !== 0) return;
    Atomics.wait(counters, readCounters.bytesInFlight, inFlight, waitMs);
  }
}

function reply(message: LaneReply, transfer: readonly ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}
