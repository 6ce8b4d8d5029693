/**
 * One call of a tool, from the model's words to a recorded outcome. Owns the order that makes recovery possible (E2):
 *
 * 1. Nothing of a tool runs before its `tool-started` is durable.
 * 2. A call that is not going to run (unknown, unreadable, refused, too late) has a `tool-done` and no `tool-started`; only an
 *    interrupt that comes while `tool-started` is written leaves one whose `tool-done` says that it did not run.
 * 3. Every call ends in exactly one `tool-done`, unless the journal fails.
 *
 * A tool is code of others. What it throws is a result; when it is interrupted and does not end within the grace, its
 * outcome is unknown and whatever it does later is not waited for (C6).
 */
import { onAbort, raceAbort } from "../core/index.js";
import type { Json } from "../core/index.js";
import type { NewEvent, ToolCallPart, ToolOutcome } from "../session-store/index.js";
import type { ToolResult } from "../tool/index.js";
import { interruptReason } from "./interrupt.js";
import type { Timer } from "./timer.js";
import { parseInput } from "./tool-input.js";
import { boundedData, boundedText, errorText, resultCharsMax } from "./tool-output.js";
import type { GatedCall, TurnHost, TurnTool } from "./turn-host.js";

export const graceMs = 5_000;

export interface CallScope {
  readonly tools: ReadonlyMap<string, TurnTool>;
  readonly host: Pick<TurnHost, "live" | "approve" | "abandoned" | "keep">;
  /** Durable on return, with the step's ids. */
  readonly journal: (events: readonly NewEvent[]) => Promise<void>;
  readonly signal: AbortSignal;
  readonly timer: Timer;
}

interface Outcome {
  readonly outcome: ToolOutcome;
  readonly text: string;
  readonly data?: Json | undefined;
}

/** Rejects only with what the host rejected with. */
export async function runToolCall(call: ToolCallPart, scope: CallScope): Promise<void> {
  const { signal } = scope;
  const prepared = signal.aborted ? tooLate(signal) : await prepare(call, scope);
  if ("outcome" in prepared) return scope.journal([toolDone(call, prepared)]);
  await scope.journal([{ type: "tool-started", callId: call.callId, name: call.name }]);
  await scope.journal([toolDone(call, await execute(call, prepared, scope))]);
}

/** The event that ends a call. */
export const toolDone = ({ callId, name }: ToolCallPart, { outcome, text, data }: Outcome): NewEvent => ({
  type: "tool-done",
  callId,
  name,
  outcome,
  text,
  ...(data === undefined ? {} : { data }),
});

interface Prepared {
  readonly tool: TurnTool;
  readonly value: unknown;
}

async function prepare(call: ToolCallPart, scope: CallScope): Promise<Prepared | Outcome> {
  const { tools, signal } = scope;
  const tool = tools.get(call.name);
  if (tool === undefined) return error(unknownTool(call.name, tools));
  const parsed = parseInput(call);
  if (!parsed.ok) return error(`The call did not run: ${parsed.problem}.`);
  try {
    const { value, issues } = await raceAbort(tool.validate(parsed.input, { signal }), signal);
    if (issues !== undefined) {
      return error(`The call did not run: its input does not suit the tool.\n${issues.join("\n")}`);
    }
    const gated = await raceAbort(tool.needsApproval(value), signal);
    if (!gated) return { tool, value };
    const refusal = await ask({ callId: call.callId, tool: call.name, input: parsed.input }, scope);
    return refusal ?? { tool, value };
  } catch (thrown) {
    if (thrown instanceof HostFailure) throw thrown.cause;
    return signal.aborted ? tooLate(signal) : error(`The call did not run: ${errorText(thrown)}`);
  }
}

/** Tells what the session's own code threw from what a tool's did. */
class HostFailure extends Error {}

async function ask(gated: GatedCall, { host, signal }: CallScope): Promise<Outcome | undefined> {
  let answer;
  try {
    answer = await raceAbort(host.approve(gated, signal), signal);
  } catch (cause) {
    if (signal.aborted) return tooLate(signal);
    throw new HostFailure("the session could not ask", { cause });
  }
  if (answer.approve) return undefined;
  const reason = answer.reason === undefined || answer.reason === "" ? "" : `: ${boundedText(answer.reason, 2_000)}`;
  return { outcome: "refused", text: `This call did not run: it was not approved${reason}` };
}

async function execute(call: ToolCallPart, { tool, value }: Prepared, scope: CallScope): Promise<Outcome> {
  const { host, signal, timer } = scope;
  // The interrupt may have come while `tool-started` was written; the tool has not begun.
  if (signal.aborted) return tooLate(signal);
  const { callId } = call;
  // A signal of the call's own: many tools listening to one would make Node warn of a leak.
  const own = new AbortController();
  const forget = onAbort(signal, () => own.abort(signal.reason));
  let open = true;
  const progress = (text: string): void => {
    if (open && typeof text === "string") host.live({ type: "tool-progress", callId, text: boundedText(text, 2_000) });
  };
  const ran = Promise.resolve()
    .then(() => tool.execute(value, { signal: own.signal, callId, progress }))
    .then((result) => resultOutcome(result, (text) => host.keep?.(callId, text)))
    .catch((thrown: unknown) => error(errorText(thrown)));
  try {
    const outcome = await withGrace(ran, signal, timer);
    if (outcome !== undefined) return outcome;
  } finally {
    open = false;
    forget();
  }
  host.abandoned?.({ callId, tool: call.name, settled: ran.then(() => undefined) });
  return {
    outcome: "unknown",
    text: `This call was interrupted and had not ended after ${graceMs / 1_000} s. It may have done all, part or nothing of its work; look before repeating it.`,
  };
}

function resultOutcome({ text, data, isError }: ToolResult, keep: (text: string) => string | undefined): Outcome {
  const name = text.length > resultCharsMax ? keep(text) : undefined;
  const kept = name === undefined ? "" : `; Read shows all of them, as the file ${JSON.stringify(name)}`;
  return {
    outcome: isError ? "error" : "ok",
    text: boundedText(text, resultCharsMax, kept),
    data: boundedData(data),
  };
}

/** What `work` resolves with, or undefined when it has not by `graceMs` after the abort. */
function withGrace<T>(work: Promise<T>, signal: AbortSignal, timer: Timer): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    let stop = (): void => undefined;
    const forget = onAbort(signal, () => {
      stop = timer.after(graceMs, () => resolve(undefined));
    });
    void work.then(resolve, reject).finally(() => {
      forget();
      stop();
    });
  });
}

const error = (text: string): Outcome => ({ outcome: "error", text: boundedText(text) });

const tooLate = (signal: AbortSignal): Outcome => ({
  outcome: "refused",
  text: `This call did not run: the turn was interrupted (${interruptReason(signal)}).`,
});

function unknownTool(name: string, tools: ReadonlyMap<string, TurnTool>): string {
  const names = [...tools.keys()].slice(0, 100).join(", ");
  return `There is no tool ${JSON.stringify(name)}. ${names === "" ? "There are no tools." : `There are: ${names}.`}`;
}
