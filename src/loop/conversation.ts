/**
 * What has been said, as plain data. A conversation is a fold over the events of one loop, so a resumed session has exactly
 * the history that the running one had. Pure: nothing here knows models, tools or journals.
 */
import type { CallId, Json, LoopId, StepId } from "../core/index.js";
import type { AssistantPart, NewEvent, ToolCallPart, ToolOutcome } from "../session-store/index.js";

export interface Conversation {
  readonly messages: readonly Message[];
}

/** One thing that was said in a loop, or that its model should know. */
export type Message =
  /** What the user said. */
  | { readonly role: "user"; readonly text: string }
  /** What the model should know of what happened beside the conversation. */
  | { readonly role: "note"; readonly text: string }
  | AssistantMessage;

/** What a model said in one step, and what came of its calls. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly stepId: StepId | undefined;
  /** Who wrote it: `provider/model`. */
  readonly model: string;
  readonly content: readonly AssistantPart[];
  /** Of its calls, those that began to run. */
  readonly started: readonly CallId[];
  /** Of its calls, those that have ended; in the order in which they did. */
  readonly results: readonly CallResult[];
}

/** What a call ended with: its text is what the model was told. */
export interface CallResult {
  readonly callId: CallId;
  readonly outcome: ToolOutcome;
  readonly text: string;
  readonly data?: Json;
}

export const emptyConversation: Conversation = { messages: [] };

/** Paths named in one note; beyond, a count says enough. */
const notedPathsMax = 50;

/** The conversation of loop `loopId` after these events as well. Events of other loops, and those without words, pass. */
export function withEvents(before: Conversation, events: Iterable<NewEvent>, loopId: LoopId | undefined): Conversation {
  const messages = [...before.messages];
  for (const event of events) {
    if (event.loopId !== undefined && event.loopId !== loopId) continue;
    apply(messages, event);
  }
  return messages.length === before.messages.length && messages.every((message, i) => message === before.messages[i])
    ? before
    : { messages };
}

/** The calls of a message, in the model's order. */
export const callsOf = (message: { readonly content: readonly AssistantPart[] }): readonly ToolCallPart[] =>
  message.content.filter((part) => part.type === "tool-call");

/** A result for every call, in the order of calls. What no journal knows the outcome of is said to be unknown (C6). */
export function resultsOf(message: AssistantMessage): readonly CallResult[] {
  const known = new Map(message.results.map((result) => [result.callId, result]));
  const started = new Set(message.started);
  return callsOf(message).map(
    ({ callId }) =>
      known.get(callId) ??
      (started.has(callId)
        ? { callId, outcome: "unknown", text: unknownOutcome }
        : { callId, outcome: "refused", text: neverRan }),
  );
}

export const unknownOutcome =
  "The outcome of this call is unknown: it began, and the session ended before it did. It may have done all, part or nothing of its work; look before repeating it.";
export const neverRan = "This call did not run: the turn ended before it began.";

function apply(messages: Message[], event: NewEvent): void {
  switch (event.type) {
    case "turn-started":
      if (event.kind === "prompt") messages.push({ role: "user", text: event.input });
      return;
    case "step-started":
      messages.push({
        role: "assistant",
        stepId: event.stepId,
        model: event.model,
        content: event.content,
        started: [],
        results: [],
      });
      return;
    case "tool-started":
      change(messages, event.callId, (message) => ({ ...message, started: [...message.started, event.callId] }));
      return;
    case "tool-done":
      change(messages, event.callId, (message) => ({ ...message, results: [...message.results, resultOf(event)] }));
      return;
    case "turn-interrupted":
      if (event.loopId !== undefined)
        messages.push({ role: "note", text: `The turn was interrupted: ${event.reason}` });
      return;
    case "turn-failed":
      if (event.loopId !== undefined)
        messages.push({ role: "note", text: `The turn ended with an error (${event.code}).` });
      return;
    case "workspace-restored":
      messages.push({ role: "note", text: isRebuild(event) ? rebuiltNote : restoredNote(event, "by the user", 0) });
      return;
    case "restore-noticed":
      messages.push({ role: "note", text: restoredNote(event, "in another session", event.more) });
      return;
    default:
  }
}

const resultOf = ({ callId, outcome, text, data }: NewEvent<"tool-done">): CallResult => ({
  callId,
  outcome,
  text,
  ...(data === undefined ? {} : { data }),
});

/** Only the newest message can have calls that still run; an older one is looked for all the same, since journals are data. */
function change(messages: Message[], callId: CallId, to: (message: AssistantMessage) => AssistantMessage): void {
  const index = messages.findLastIndex(
    (message) => message.role === "assistant" && callsOf(message).some((call) => call.callId === callId),
  );
  const message = messages[index];
  if (message?.role === "assistant") messages[index] = to(message);
}

/** A root that was gone, or was another directory, is built as a whole: no path of it is written or deleted. */
const isRebuild = ({ action, written, deleted }: NewEvent<"workspace-restored">): boolean =>
  action === "restore" && written.length === 0 && deleted.length === 0;

const rebuiltNote =
  "The workspace was gone and was built anew from a checkpoint. What was read of its files before may be out of date.";

/** Loops are told which paths changed beneath them (U8). */
function restoredNote(
  { action, written, deleted }: Pick<NewEvent<"workspace-restored">, "action" | "written" | "deleted">,
  where: string,
  unnamed: number,
): string {
  const what = { undo: "An undo", redo: "A redo", restore: "A restore" }[action];
  const lists = [pathList("put back", written), pathList("removed", deleted)].filter((list) => list !== "");
  const more = unnamed === 0 ? "" : `; and ${unnamed} more`;
  return `${what} ${where} changed the workspace: ${lists.join("; ") || "no files"}${more}. What was read of these files before is out of date.`;
}

function pathList(verb: string, paths: readonly string[]): string {
  if (paths.length === 0) return "";
  const shown = paths.slice(0, notedPathsMax).map((path) => JSON.stringify(path));
  const more = paths.length > notedPathsMax ? ` and ${paths.length - notedPathsMax} more` : "";
  return `${verb} ${shown.join(", ")}${more}`;
}
