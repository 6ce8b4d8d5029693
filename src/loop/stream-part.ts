/**
 * A part of a model's stream, as far as a loop has use for it. Both specifications, v3 and v4, are read by this one parser:
 * what they share is everything we need, and what is new in v4 (`ping`, `custom`) is new by name. Pure.
 */
import type { Json } from "../core/index.js";
import type { ProviderMetadata, TokenUsage } from "../session-store/index.js";
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
  if (typeof value !== "object" || value === null) return undefined;
  const part = value as Readonly<Record<string, unknown>>;
  const { type } = part;
  if (typeof type !== "string") return undefined;
  const metadata = metadataOf(part["providerMetadata"]);
  const id = textOf(part["id"]);
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
      const delta = textOf(part["delta"]);
      return id === undefined || delta === undefined ? undefined : { type, id, delta, metadata };
    }
    case "tool-input-start": {
      const name = textOf(part["toolName"]);
      if (id === undefined || name === undefined) return undefined;
      if (part["providerExecuted"] === true) return { type: "other" };
      return { type, id, name, encoding: part["inputEncoding"] === "text" ? "text" : "json", metadata };
    }
    case "tool-call": {
      const callId = textOf(part["toolCallId"]);
      const name = textOf(part["toolName"]);
      const input = textOf(part["input"]);
      if (callId === undefined || name === undefined || input === undefined) return undefined;
      return part["providerExecuted"] === true ? { type: "other" } : { type, id: callId, name, input, metadata };
    }
    case "custom": {
      const kind = textOf(part["kind"]);
      return kind === undefined ? undefined : { type, kind, metadata };
    }
    case "finish":
      return { type, reason: reasonOf(part["finishReason"]), usage: usageOf(part["usage"]) };
    case "error":
      return { type, error: part["error"] };
    default:
      return { type: "other" };
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

const reasons = new Set(["stop", "length", "content-filter", "tool-calls", "error"]);

function reasonOf(value: unknown): string {
  const { unified } = membersOf(value);
  return typeof unified === "string" && reasons.has(unified) ? unified : "other";
}

function usageOf(value: unknown): TokenUsage {
  const { inputTokens, outputTokens } = membersOf(value);
  const input = membersOf(inputTokens);
  const output = membersOf(outputTokens);
  return {
    ...count("inputTokens", input["total"]),
    ...count("outputTokens", output["total"]),
    ...count("cachedInputTokens", input["cacheRead"]),
    ...count("reasoningTokens", output["reasoning"]),
  };
}

const count = <K extends keyof TokenUsage>(name: K, value: unknown): { readonly [P in K]?: number } =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? ({ [name]: value } as { [P in K]: number }) : {};

/** As JSON keeps it, or nothing: what cannot be stored cannot be sent back either. */
function metadataOf(value: unknown): ProviderMetadata | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  try {
    const copy = JSON.parse(JSON.stringify(value)) as { readonly [provider: string]: Json };
    return Object.keys(copy).length > 0 && isShallow(copy) ? copy : undefined;
  } catch {
    return undefined;
  }
}
