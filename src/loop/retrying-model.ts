/**
 * A call of a model, repeated when that can help: the failure passes by itself, and nothing of the answer was shown yet,
 * since nobody can take back what was read. The AI SDK's providers do not retry by themselves.
 */
import { callModel } from "./model-stream.js";
import type { ModelCall, ModelReply } from "./model-stream.js";
import type { LanguageModel } from "./model.js";
import { pause } from "./timer.js";

export interface RetryPolicy {
  /** Further attempts after the first. */
  readonly retries: number;
  /** Before the first retry; doubled for each further one. */
  readonly delayMs: number;
  /** No wait is longer. A provider that asks for more is not asked again. */
  readonly delayMsMax: number;
}

export const defaultRetryPolicy: RetryPolicy = { retries: 3, delayMs: 1_000, delayMsMax: 60_000 };

/** Never rejects. `random` gives numbers from 0 to 1, so that those who failed together do not come back together. */
export async function callModelRetrying(
  model: LanguageModel,
  call: ModelCall,
  policy: RetryPolicy,
  random: () => number,
): Promise<ModelReply> {
  for (let attempt = 0; ; attempt++) {
    let shown = false as boolean;
    const reply = await callModel(model, {
      ...call,
      onText: (text) => {
        shown = true;
        call.onText(text);
      },
    });
    if (reply.status !== "failed" || shown || attempt >= policy.retries) return reply;
    const delayMs = delayBefore(attempt, reply.failure.retryAfterMs, policy, random);
    if (!reply.failure.error.retryable || delayMs > policy.delayMsMax) return reply;
    await pause(call.timer, delayMs, call.signal);
    if (call.signal.aborted) return { status: "interrupted", content: [] };
  }
}

function delayBefore(
  attempt: number,
  asked: number | undefined,
  { delayMs, delayMsMax }: RetryPolicy,
  random: () => number,
): number {
  return asked ?? Math.min(delayMs * 2 ** attempt, delayMsMax) * (0.5 + random() / 2);
}
