/**
 * The calls of one step, side by side. Bounded, since a model may ask for hundreds. When the session cannot go on (its
 * journal failed), nothing more is begun, what runs is interrupted, and the failure is reported once all of it has ended.
 */
import { onAbort } from "../core/index.js";
import type { AdmittedCall } from "./turn-state.js";
import { runToolCall, toolDone } from "./tool-call.js";
import type { CallScope } from "./tool-call.js";

export const parallelCallsMax = 16;
/** Refusals journaled in one append. */
const refusalsPerAppend = 100;

/** Rejects only with what the host rejected with. */
export async function runBatch(calls: readonly AdmittedCall[], scope: CallScope): Promise<void> {
  await journalRefusals(calls, scope);
  const stop = new AbortController();
  if (scope.signal.aborted) stop.abort(scope.signal.reason);
  const forget = scope.signal.aborted ? () => undefined : onAbort(scope.signal, () => stop.abort(scope.signal.reason));
  const failures: unknown[] = [];
  const guarded: CallScope = {
    ...scope,
    signal: stop.signal,
    journal: async (events) => {
      // After a failure nothing is known of the journal, so nothing may be begun that it should have recorded.
      if (failures.length > 0) throw failures[0];
      await scope.journal(events);
    },
  };
  const waiting = calls.filter(({ refused }) => refused === undefined).values();
  const work = async (): Promise<void> => {
    for (const { call } of waiting) {
      if (failures.length > 0) return;
      try {
        await runToolCall(call, guarded);
      } catch (error) {
        failures.push(error);
        stop.abort(new Error("the session could not go on"));
      }
    }
  };
  // The workers share one iterator: each takes the next call, so calls begin in the model's order.
  await Promise.all(Array.from({ length: parallelCallsMax }, work));
  forget();
  if (failures.length > 0) throw failures[0];
}

async function journalRefusals(calls: readonly AdmittedCall[], scope: CallScope): Promise<void> {
  const events = calls.flatMap(({ call, refused }) =>
    refused === undefined ? [] : [toolDone(call, { outcome: "refused", text: refused })],
  );
  for (let at = 0; at < events.length; at += refusalsPerAppend) {
    await scope.journal(events.slice(at, at + refusalsPerAppend));
  }
}
