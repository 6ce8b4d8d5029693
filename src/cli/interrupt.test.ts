import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { Interrupted, armInterrupts } from "./interrupt.js";

test("the first signal aborts the work, the second stops the process", () => {
  const source = new EventEmitter();
  const stopped: number[] = [];
  const { signal } = armInterrupts(source, (exitCode) => stopped.push(exitCode));
  source.emit("SIGINT", "SIGINT");
  expect(signal.aborted).toBe(true);
  expect(signal.reason).toBeInstanceOf(Interrupted);
  expect(stopped).toEqual([]);
  source.emit("SIGINT", "SIGINT");
  expect(stopped).toEqual([130]);
});

test("disarmed, nothing of ours listens any more", () => {
  const source = new EventEmitter();
  const interrupts = armInterrupts(source, () => undefined);
  interrupts.disarm();
  interrupts.disarm();
  expect(source.eventNames()).toEqual([]);
  expect(interrupts.signal.aborted).toBe(false);
});
