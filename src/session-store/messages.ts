/**
 * What a step says, in the form that journals keep: part of the table of events, in a file of its own because it is what
 * loops and prompts are made of. Read for ever, like the events.
 */
import type { CallId, Json } from "../core/index.js";

/** What a provider wants back unchanged with the part it came with (signatures, item ids). Opaque to us. */
export type ProviderMetadata = { readonly [provider: string]: Json };

/** One part of a model's message, in the order in which it was said. */
export type AssistantPart = TextPart | ReasoningPart | ToolCallPart | CustomPart;

/** What the model says. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly metadata?: ProviderMetadata;
}

/** What the model thought, where its provider shows it. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly metadata?: ProviderMetadata;
}

/** A tool call that the model asks for. Whether it ran is told by `tool-started` and `tool-done`. */
export interface ToolCallPart {
  readonly type: "tool-call";
  /** Ours, and so unique in the session whatever ids the model makes up. */
  readonly callId: CallId;
  readonly name: string;
  /** As the model wrote it; JSON if the model is well behaved. */
  readonly input: string;
  /** The model's own name for the call. Models repeat these, and some leave them out. */
  readonly modelCallId?: string;
  /** The message ended before the input did. */
  readonly cut?: boolean;
  readonly metadata?: ProviderMetadata;
}

/** A part that only its provider understands and wants to see again. */
export interface CustomPart {
  readonly type: "custom";
  readonly kind: string;
  readonly metadata?: ProviderMetadata;
}

/** "refused": it did not run, by decision. "unknown": it may have done anything, or part of it. */
export type ToolOutcome = "ok" | "error" | "refused" | "unknown";

/** Tokens, as far as the provider states them. */
export interface TokenUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Of the input tokens, those read from the provider's cache. */
  readonly cachedInputTokens?: number;
  /** Of the output tokens, those spent on reasoning. */
  readonly reasoningTokens?: number;
}

/** The limit that a turn came to (`TurnLimits`). */
export type TurnLimit = "steps" | "toolCalls";
