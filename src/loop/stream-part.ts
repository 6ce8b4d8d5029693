/**
 * A part of a model's stream, as far as a loop has use for it. Both specifications, v3 and v4, are read by this one parser:
 * what they share is everything we need, and what is new in v4 (`ping`, `custom`) is new by name. Pure.
 */
import type { Json } from "../core/index.js";
import type { ProviderMetadata, TokenUsage } from "../session-store/index.js";
import { memberOf, textMember } from "./foreign.js";
import { isShallow } from "./json-depth.js";

export type StreamPart =
  | ({ readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end" | "tool-input-end" } & Keyed)
  | ({ readonly type: "text-delta" | "reasoning-delta" | "tool-input-delta"; readonly delta: string } & Keyed)
  | ({ readonly type: "tool-input-start"; readonly name: string; readonly encoding: "json" | "text" } & Keyed)
  | ({ readonly type: "tool-call"; readonly name: string; readonly input: string } & Keyed)
  | { readonly type: "custom"; readonly kind: string; readonly metadata: ProviderMetadata | undefined }
  | { readonly type: "finish"; readonly reason: string; readonly usage: TokenUsage }
  | { readonly type: "error"; readonly error: unknown }
  /** Proof of life without content, and whatever we have no use for: sources, files, warnings, calls the provider ran itself. */
  | { readonly type: "other" };

interface Keyed {
  readonly id: string;
  readonly metadata: ProviderMetadata | undefined;
}

/** Undefined when `value` is no stream part at all. */
export function parseStreamPart(value: unknown): StreamPart | undefined {
  const part = (name: string): unknown => memberOf(value, name);
  const text = (name: string): string | undefined => textMember(value, name);
  const type = text("type");
  if (type === undefined) return undefined;
  const metadata = metadataOf(part("providerMetadata"));
  const id = text("id");
  switch (type) {
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
    case "tool-input-end":
      return id === undefined ? undefined : { type, id, metadata };
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta": {
      const delta = text("delta");
      return id === undefined || delta === undefined ? undefined : { type, id, delta, metadata };
    }
    case "tool-input-start": {
      const name = text("toolName");
      if (id === undefined || name === undefined) return undefined;
      if (part("providerExecuted") === true) return { type: "other" };
      return { type, id, name, encoding: part("inputEncoding") === "text" ? "text" : "json", metadata };
    }
    case "tool-call": {
      const callId = text("toolCallId");
      const name = text("toolName");
      const input = text("input");
      if (callId === undefined || name === undefined || input === undefined) return undefined;
      return part("providerExecuted") === true ? { type: "other" } : { type, id: callId, name, input, metadata };
    }
    case "custom": {
      const kind = text("kind");
      return kind === undefined ? undefined : { type, kind, metadata };
    }
    case "finish":
      return { type, reason: reasonOf(part("finishReason")), usage: usageOf(part("usage")) };
    case "error":
      return { type, error: part("error") };
    default:
      return { type: "other" };
  }
}

const reasons = new Set(["stop", "length", "content-filter", "tool-calls", "error"]);

function reasonOf(value: unknown): string {
  const unified = textMember(value, "unified");
  return unified !== undefined && reasons.has(unified) ? unified : "other";
}

function usageOf(value: unknown): TokenUsage {
  const input = memberOf(value, "inputTokens");
  const output = memberOf(value, "outputTokens");
  return {
    ...count("inputTokens", memberOf(input, "total")),
    ...count("outputTokens", memberOf(output, "total")),
    ...count("cachedInputTokens", memberOf(input, "cacheRead")),
    ...count("reasoningTokens", memberOf(output, "reasoning")),
  };
}

const count = <K extends keyof TokenUsage>(name: K, value: unknown): { readonly [P in K]?: number } =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? ({ [name]: value } as { [P in K]: number }) : {};

/** Signatures and item ids are short; encrypted reasoning has been seen with tens of thousands of characters. */
const metadataCharsMax = 512 * 1024;

/** As JSON keeps it, or nothing: what cannot be stored cannot be sent back either. */
function metadataOf(value: unknown): ProviderMetadata | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  try {
    const text = JSON.stringify(value);
    if (text.length > metadataCharsMax) return undefined;
    const copy = JSON.parse(text) as Json;
    if (typeof copy !== "object" || copy === null || Array.isArray(copy)) return undefined;
    return Object.keys(copy).length > 0 && isShallow(copy) ? (copy as ProviderMetadata) : undefined;
  } catch {
    return undefined;
  }
}
