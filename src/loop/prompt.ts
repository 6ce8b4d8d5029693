/**
 * A conversation as models of specification v3 and v4 take it; for text and tools the two are the same. Pure, and the
 * prompt of a longer conversation begins with that of a shorter one, which is what providers' caches live on.
 *
 * Whatever the conversation holds, the prompt is one that providers accept: one bad call must not make every later turn
 * fail. So names and ids are of the form they demand, inputs are objects, every call has its result, and nobody speaks
 * twice in a row.
 */
import type { Json } from "../core/index.js";
import type { AssistantPart, ToolCallPart } from "../session-store/index.js";
import { callsOf, resultsOf } from "./conversation.js";
import type { AssistantMessage, CallResult, Conversation, Message } from "./conversation.js";
import { wellFormed, wellFormedJson } from "./plain-text.js";
import { parseInput } from "./tool-input.js";
import { boundedText } from "./tool-output.js";

/** Of one text. A longer one is no message, and would burden every later call. */
export const textCharsMax = 400_000;
/** Of all results of one step: a model may ask for hundreds of files at once, and has to live with the answer. */
export const resultsCharsMax = 400_000;

export type Prompt = readonly PromptMessage[];

export type PromptMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: readonly [{ readonly type: "text"; readonly text: string }] }
  | { readonly role: "assistant"; readonly content: readonly PromptPart[] }
  | { readonly role: "tool"; readonly content: readonly PromptResult[] };

export type PromptPart = (
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | { readonly type: "tool-call"; readonly toolCallId: string; readonly toolName: string; readonly input: Json }
  | { readonly type: "custom"; readonly kind: string }
) & { readonly providerOptions?: Readonly<Record<string, Json>> };

export interface PromptResult {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output: { readonly type: "text" | "error-text"; readonly value: string };
}

export interface PromptTarget {
  /** `provider/model` of the model that will read it. */
  readonly model: string;
  readonly specificationVersion: "v3" | "v4";
  readonly system?: string | undefined;
  /** Said last, for this call only. */
  readonly closing?: string | undefined;
}

export function toPrompt(conversation: Conversation, target: PromptTarget): Prompt {
  const ids = new CallIds();
  const prompt: PromptMessage[] = [];
  if (target.system !== undefined && target.system !== "")
    prompt.push({ role: "system", content: wellFormed(target.system) });
  for (const message of conversation.messages) {
    if (message.role === "assistant") prompt.push(...assistantTurn(message, target, ids));
    else say(prompt, spoken(message));
  }
  if (target.closing !== undefined) say(prompt, target.closing);
  return prompt;
}

const spoken = (message: Exclude<Message, AssistantMessage>): string =>
  message.role === "user" ? message.text : `[${message.text}]`;

/** Some servers demand that roles alternate, and some that a user's message is one text. */
function say(prompt: PromptMessage[], text: string): void {
  const last = prompt.at(-1);
  const joined = last?.role === "user" ? `${last.content[0].text}\n\n${text}` : text;
  if (last?.role === "user") prompt.pop();
  prompt.push({ role: "user", content: [{ type: "text", text: wellFormed(joined) }] });
}

function assistantTurn(message: AssistantMessage, target: PromptTarget, ids: CallIds): readonly PromptMessage[] {
  const calls = new Map(callsOf(message).map((call) => [call.callId, { id: ids.of(call), name: toolName(call.name) }]));
  const content = withoutTrailingThoughts(
    message.content.flatMap((part) => promptPart(part, message.model === target.model, target, calls)),
  );
  if (content.length === 0) return [];
  const given = resultsOf(message);
  const total = given.reduce((sum, { text }) => sum + text.length, 0);
  const charsMax = total <= resultsCharsMax ? Infinity : Math.floor(resultsCharsMax / given.length);
  const results = given.map((result) => promptResult(result, calls.get(result.callId), charsMax));
  return [
    { role: "assistant", content },
    ...(results.length === 0 ? [] : [{ role: "tool" as const, content: results }]),
  ];
}

/** Providers refuse a message that ends in reasoning, or has nothing else: nothing came of that thought. */
function withoutTrailingThoughts(content: readonly PromptPart[]): readonly PromptPart[] {
  return content.slice(0, content.findLastIndex(({ type }) => type !== "reasoning") + 1);
}

interface PromptCall {
  readonly id: string;
  readonly name: string;
}

function promptPart(
  part: AssistantPart,
  sameModel: boolean,
  target: PromptTarget,
  calls: ReadonlyMap<string, PromptCall>,
): readonly PromptPart[] {
  // Signatures and item ids mean something to the model that made them, and are refused by others.
  const options = sameModel && part.metadata !== undefined ? { providerOptions: part.metadata } : {};
  switch (part.type) {
    case "text":
      // Providers refuse a text of white space only.
      return part.text.trim() === "" ? [] : [{ type: "text", text: boundedText(part.text, textCharsMax), ...options }];
    case "reasoning":
      // It may be signed, so it is sent as it came or not at all.
      return sameModel && part.text.length <= textCharsMax
        ? [{ type: "reasoning", text: wellFormed(part.text), ...options }]
        : [];
    case "tool-call": {
      const call = calls.get(part.callId);
      if (call === undefined) return [];
      return [{ type: "tool-call", toolCallId: call.id, toolName: call.name, input: objectInput(part), ...options }];
    }
    case "custom":
      return sameModel && target.specificationVersion === "v4" ? [{ type: "custom", kind: part.kind, ...options }] : [];
    default:
      return part satisfies never;
  }
}

function promptResult(
  { callId, outcome, text }: CallResult,
  call: PromptCall | undefined,
  charsMax: number,
): PromptResult {
  return {
    type: "tool-result",
    toolCallId: call?.id ?? callId,
    toolName: call?.name ?? unnamed,
    output: { type: outcome === "ok" ? "text" : "error-text", value: boundedText(text, charsMax) || noWords },
  };
}

/** Providers take objects only. The result tells the model what was wrong with anything else. */
function objectInput(call: ToolCallPart): Json {
  const parsed = parseInput(call);
  return parsed.ok && typeof parsed.input === "object" && parsed.input !== null && !Array.isArray(parsed.input)
    ? wellFormedJson(parsed.input)
    : {};
}

/** Providers refuse an error without a word. */
const noWords = "[no output]";
const unnamed = "unnamed";
const toolName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || unnamed;

/**
 * The model's own ids where they can be used: some providers accept no other form. A repeated or odd one gives way to
 * ours, which is unique.
 */
class CallIds {
  readonly #used = new Set<string>();

  of({ callId, modelCallId }: ToolCallPart): string {
    const usable =
      modelCallId !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(modelCallId) && !this.#used.has(modelCallId);
    const id = usable ? modelCallId : callId;
    this.#used.add(id);
    return id;
  }
}
