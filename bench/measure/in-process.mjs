/**
 * One operation, measured inside the process that does it: time, how long other work on the event loop waited, and memory.
 *
 * The delay is that of a timer that wants to fire every 2 ms. The loop turns a few times before and after the work: without
 * that, work that never lets go would show no delay at all, since the timer would never have fired.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { forgetPeakMemory, peakMemory } from "./peak-memory.mjs";

const resolution = 2;
const nsPerMs = 1e6;

export async function measureInProcess(work) {
  const delay = monitorEventLoopDelay({ resolution });
  forgetPeakMemory();
  delay.enable();
  await turns();
  const start = performance.now();
  const result = await work();
  const ms = performance.now() - start;
  await turns();
  delay.disable();
  return {
    ms,
    delayMaxMs: waited(delay.max),
    delayP99Ms: waited(delay.percentile(99)),
    peakBytes: peakMemory(),
    ...result,
  };
}

/** What is over the timer's own interval. */
const waited = (ns) => Math.max(0, ns / nsPerMs - resolution);

const turns = () => new Promise((resolve) => setTimeout(resolve, 4 * resolution));
