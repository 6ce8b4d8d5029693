/**
 * What a provider throws, made one of ours: which code, whether a repeated call can help, and how long the provider asks to
 * wait. Providers' errors carry prompts and keys, so of their text only a short, masked line gets into the message; all of
 * it is the `cause`.
 */
import { ModelError, isLooprigError } from "../core/index.js";
import type { LooprigError } from "../core/index.js";
import { memberOf, numberOf, textMember } from "./foreign.js";
import { shortened } from "./plain-text.js";

export interface ModelFailure {
  readonly error: LooprigError;
  /** What the provider asked for; undefined when it said nothing. */
  readonly retryAfterMs: number | undefined;
}

const messageCharsMax = 300;

/** The call was refused, or never arrived: `doStream` rejected. */
export function callFailure(model: string, thrown: unknown): ModelFailure {
  const own = ownError(thrown);
  if (own !== undefined) return { error: own, retryAfterMs: undefined };
  const { status, retryable, retryAfterMs } = readApiError(thrown);
  const what = status === undefined ? "the call failed" : `the provider answered with status ${status}`;
  const error = new ModelError(
    "model.call_failed",
    `Cannot call model ${JSON.stringify(model)}: ${what}${saying(thrown)}, wanted an answer; ${
      retryable ? "try again later" : "check the model's name, its key and what was asked"
    }`,
    { model, ...(status === undefined ? {} : { status }) },
    { cause: thrown, retryable },
  );
  return { error, retryAfterMs };
}

/** An error part in the stream. */
export function streamFailure(model: string, reported: unknown): ModelFailure {
  const own = ownError(reported);
  if (own !== undefined) return { error: own, retryAfterMs: undefined };
  const { retryAfterMs } = readApiError(reported);
  const error = new ModelError(
    "model.stream_failed",
    `Cannot finish the answer of model ${JSON.stringify(model)}: the provider reported an error in the middle of it${saying(reported)}, wanted the rest; submit again to go on`,
    { model },
    { cause: reported, retryable: isPassing(reported) },
  );
  return { error, retryAfterMs };
}

/** The stream broke, or ended without saying that it does. */
export function cutFailure(model: string, cause: unknown): ModelFailure {
  const error = new ModelError(
    "model.stream_cut",
    `Cannot finish the answer of model ${JSON.stringify(model)}: the connection ended before it${cause === undefined ? "" : saying(cause)}, wanted the rest; submit again to go on`,
    { model },
    { cause, retryable: true },
  );
  return { error, retryAfterMs: undefined };
}

export function stallFailure(model: string, idleMs: number): ModelFailure {
  const error = new ModelError(
    "model.stalled",
    `Cannot finish the answer of model ${JSON.stringify(model)}: nothing came for ${Math.round(idleMs / 1000)} s, wanted the rest; submit again to go on`,
    { model, idleMs },
    { retryable: true },
  );
  return { error, retryAfterMs: undefined };
}

export function invalidResponse(model: string, reason: string): ModelFailure {
  const error = new ModelError(
    "model.invalid_response",
    `Cannot use the answer of model ${JSON.stringify(model)}: ${reason}, wanted what its specification says; check that provider and AI SDK belong together`,
    { model, reason },
  );
  return { error, retryAfterMs: undefined };
}

/** An error of this library, of whatever copy. What only looks like one is a provider's like any other. */
function ownError(thrown: unknown): LooprigError | undefined {
  try {
    return isLooprigError(thrown) && [thrown.code, thrown.message].every((text: unknown) => typeof text === "string")
      ? thrown
      : undefined;
  } catch {
    return undefined;
  }
}

interface ApiError {
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
}

/** An `APICallError` of whatever copy of the AI SDK: its class is not ours to import, its members are documented. */
function readApiError(thrown: unknown): ApiError {
  const statusCode = memberOf(thrown, "statusCode");
  const isRetryable = memberOf(thrown, "isRetryable");
  const status = Number.isSafeInteger(statusCode) ? (statusCode as number) : undefined;
  const retryable = typeof isRetryable === "boolean" ? isRetryable : status !== undefined && isPassingStatus(status);
  return { status, retryable, retryAfterMs: retryAfter(memberOf(thrown, "responseHeaders")) };
}

const isPassingStatus = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || (status >= 500 && status < 600);

/** Whether an error in the stream is the kind that passes: overload, a limit, a garbled line. */
function isPassing(reported: unknown): boolean {
  const isRetryable = memberOf(reported, "isRetryable");
  if (typeof isRetryable === "boolean") return isRetryable;
  const [type, code, status, name] = ["type", "code", "status", "name"].map((member) => memberOf(reported, member));
  if ([code, status].some((value) => isPassingStatus(numberOf(value) ?? 0))) return true;
  const words = [type, code, status, name].filter((value) => typeof value === "string").join(" ");
  return /overloaded|rate_?limit|server_?error|api_error|unavailable|timeout|JSONParse|TypeValidation|InvalidResponseData/i.test(
    words,
  );
}

function retryAfter(headers: unknown): number | undefined {
  const seconds = numberOf(memberOf(headers, "retry-after"));
  const ms = numberOf(memberOf(headers, "retry-after-ms")) ?? (seconds === undefined ? undefined : seconds * 1_000);
  return ms !== undefined && ms >= 0 ? ms : undefined;
}

const secrets = /\b(?:sk|pk|rk|gsk|xai|hf|key|token)[-_][\w*-]{6,}|\bAIza[\w-]{10,}|\bBearer\s+\S+/gi;

/** `, saying "…"`: the provider's own words on one short line, keys masked. */
function saying(thrown: unknown): string {
  const text = typeof thrown === "string" ? thrown : (textMember(thrown, "message") ?? "");
  // Cut before it is searched: nobody knows how much a provider has to say.
  const line = text
    .slice(0, 10 * messageCharsMax)
    .replaceAll(secrets, "[masked]")
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  if (line === "") return "";
  return `, saying ${JSON.stringify(shortened(line, messageCharsMax))}`;
}
