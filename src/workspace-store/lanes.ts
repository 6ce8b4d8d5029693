/**
 * The helper threads of this process, shared by all its stores. They are started when there is enough to do, serve one
 * capture or materialization at a time, and end when they were idle for a while; they never keep the process alive by themselves.
 *
 * A helper is an accelerator and nothing else: without one, or with one that dies at work, everything is done by the thread
 * that asked.
 */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Transferable } from "node:worker_threads";
import type { LaneReply, LaneRequest } from "./lane-messages.js";
import type { EncodedBlock } from "./pack-codec.js";

/** More threads than this gain nothing on one disk. */
const helpersMax = 3;
const idleMs = 5 * 60_000;

// Said from the folder of features, so that it holds in `dist/chunks/` too.
let workerFile = new URL("../workspace-store/capture-worker.js", import.meta.url);

/** For tests that run from sources: where the compiled entry is. */
export function useWorkerFile(file: URL): void {
  workerFile = file;
}

const idle: Helper[] = [];
let started = 0;

/** For tests: ends the helpers that are free. */
export async function endHelpers(): Promise<void> {
  await Promise.all(idle.splice(0).map((helper) => helper.end()));
}

/** Whether `takeHelpers` would give one without starting it. */
export const isHelperReady = (): boolean => idle.some(({ isReady }) => isReady);

/**
 * Starts helpers that are to be taken soon; does nothing where there are no cores or no threads to be had. Starting one takes
 * some 70 ms of another core.
 */
export function prepareHelpers(): void {
  const wanted = Math.min(availableParallelism() - 1, helpersMax);
  if (started >= wanted || !existsSync(fileURLToPath(workerFile))) return;
  while (started < wanted) {
    started++;
    idle.push(new Helper(new Worker(workerFile)));
  }
}

/** Takes the helpers that are free, for one phase; each must be run once, and is free again when it is done. */
export const takeHelpers = (): Helper[] => idle.splice(0);

/** One of them. */
export const takeHelper = (): Helper | undefined => idle.pop();

export class Helper {
  readonly #worker: Worker;
  #isReady = false;
  #ended = false;
  #timer: NodeJS.Timeout | undefined;
  #block: ((block: EncodedBlock) => void) | undefined;
  #done: (() => void) | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.unref();
    worker.on("online", () => {
      this.#isReady = true;
    });
    worker.on("message", (reply: LaneReply) => {
      if (reply.kind === "block") this.#block?.(reply.block);
      else this.#finish();
    });
    // It ends after an error, and ending is what counts.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      this.#ended = true;
      started--;
      const at = idle.indexOf(this);
      if (at >= 0) idle.splice(at, 1);
      this.#finish();
    });
    this.#rest();
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Resolves when the helper has done its part or died; never rejects. */
  run(
    request: LaneRequest,
    onBlock?: (block: EncodedBlock) => void,
    transfer: readonly Transferable[] = [],
  ): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#ended) return Promise.resolve();
    this.#block = onBlock;
    this.#worker.ref();
    const done = new Promise<void>((resolve) => {
      this.#done = resolve;
    });
    this.#worker.postMessage(request, transfer);
    return done;
  }

  async end(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#worker.terminate();
  }

  #finish(): void {
    const done = this.#done;
    if (done === undefined) return;
    this.#done = undefined;
    this.#block = undefined;
    if (!this.#ended) {
      this.#worker.unref();
      idle.push(this);
      this.#rest();
    }
    done();
  }

  #rest(): void {
    this.#timer = setTimeout(() => void this.end(), idleMs).unref();
  }
}
