/**
 * The assistant's message, put together from the parts of a stream. Tolerant of order, since providers differ: a delta
 * without a start begins its part, a start with an id that is in use begins another. Bounded, since nothing makes a model
 * stop. Mutable inside, plain data outside.
 */
import type { CallId } from "../core/index.js";
import type { AssistantPart, ProviderMetadata } from "../session-store/index.js";
import type { StreamPart } from "./stream-part.js";

/** About a million tokens, which no model says at once. */
export const replyCharsMax = 4 * 1024 * 1024;
export const replyPartsMax = 1_000;
/** Of one call. What a model writes beyond is not kept, and the call is cut: it would burden every later step. */
export const inputCharsMax = 1024 * 1024;
/** What any part of a stream counts for, so that a stream of empty ones ends too. */
const partChars = 16;
/** A longer name is no tool's; it is cut so that it can be shown and stored. */
export const nameCharsMax = 200;

type Growing =
  | { readonly type: "text" | "reasoning"; readonly texts: string[]; metadata: ProviderMetadata | undefined }
  | {
      readonly type: "tool-call";
      readonly modelCallId: string;
      readonly name: string;
      readonly encoding: "json" | "text";
      readonly texts: string[];
      chars: number;
      state: "open" | "ended" | "called";
      metadata: ProviderMetadata | undefined;
    }
  | { readonly type: "custom"; readonly kind: string; metadata: ProviderMetadata | undefined };

export class ReplyAssembly {
  readonly #parts: Growing[] = [];
  /** Parts still growing, by kind and the stream's id. */
  readonly #open = new Map<string, Growing>();
  #chars = 0;

  constructor(private readonly mintCallId: () => CallId) {}

  /** Whether the message has become larger than any may be. */
  get overfull(): boolean {
    return this.#chars > replyCharsMax || this.#parts.length > replyPartsMax;
  }

  add(part: StreamPart): void {
    this.#chars += partChars;
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#begin(kindOf(part.type), part.id, part.metadata);
        break;
      case "text-delta":
      case "reasoning-delta": {
        const kind = kindOf(part.type);
        this.#grow(this.#open.get(key(kind, part.id)) ?? this.#begin(kind, part.id, undefined), part.delta);
        this.#note(key(kind, part.id), part.metadata);
        break;
      }
      case "text-end":
      case "reasoning-end": {
        const of = key(kindOf(part.type), part.id);
        this.#note(of, part.metadata);
        this.#open.delete(of);
        break;
      }
      case "tool-input-start":
        this.#beginCall(part.id, part.name, part.encoding, part.metadata);
        break;
      case "tool-input-delta": {
        const call = this.#open.get(key("tool-call", part.id));
        if (call !== undefined) this.#grow(call, part.delta);
        break;
      }
      case "tool-input-end": {
        const call = this.#open.get(key("tool-call", part.id));
        if (call?.type === "tool-call") call.state = "ended";
        break;
      }
      case "tool-call":
        this.#call(part);
        break;
      case "custom":
        this.#parts.push({ type: "custom", kind: part.kind.slice(0, nameCharsMax), metadata: part.metadata });
        break;
      case "finish":
      case "error":
      case "other":
        break;
      default:
        part satisfies never;
    }
  }

  /** The message as it stands. Calls whose input never ended are marked so. */
  content(): readonly AssistantPart[] {
    return this.#parts.flatMap((part): readonly AssistantPart[] => {
      const metadata = part.metadata === undefined ? {} : { metadata: part.metadata };
      switch (part.type) {
        case "text":
        case "reasoning": {
          const text = part.texts.join("");
          // An empty text says nothing, but empty reasoning may carry the signature its provider insists on.
          return text === "" && part.metadata === undefined ? [] : [{ type: part.type, text, ...metadata }];
        }
        case "tool-call": {
          const text = part.texts.join("");
          return [
            {
              type: "tool-call",
              callId: this.mintCallId(),
              name: part.name,
              input: part.encoding === "text" && part.state !== "called" ? JSON.stringify(text) : text,
              ...(part.modelCallId === "" ? {} : { modelCallId: part.modelCallId }),
              ...(part.state === "open" || part.chars > inputCharsMax ? { cut: true } : {}),
              ...metadata,
            },
          ];
        }
        case "custom":
          return [{ type: "custom", kind: part.kind, ...metadata }];
        default:
          return part satisfies never;
      }
    });
  }

  #begin(type: "text" | "reasoning", id: string, metadata: ProviderMetadata | undefined): Growing {
    const part: Growing = { type, texts: [], metadata };
    this.#parts.push(part);
    this.#open.set(key(type, id), part);
    return part;
  }

  #beginCall(id: string, name: string, encoding: "json" | "text", metadata: ProviderMetadata | undefined): Growing {
    const part: Growing = {
      type: "tool-call",
      modelCallId: id.slice(0, nameCharsMax),
      name: name.slice(0, nameCharsMax),
      encoding,
      texts: [],
      chars: 0,
      state: "open",
      metadata,
    };
    this.#parts.push(part);
    this.#open.set(key("tool-call", id), part);
    return part;
  }

  /** The complete call: it replaces what was streamed of it. */
  #call({ id, name, input, metadata }: Extract<StreamPart, { type: "tool-call" }>): void {
    const streamed = this.#open.get(key("tool-call", id));
    this.#open.delete(key("tool-call", id));
    const part = streamed?.type === "tool-call" && streamed.name === name.slice(0, nameCharsMax) ? streamed : undefined;
    const call = part ?? this.#beginCall(id, name, "json", metadata);
    if (part === undefined) this.#open.delete(key("tool-call", id));
    if (call.type !== "tool-call") return;
    call.texts.length = 0;
    call.chars = 0;
    this.#grow(call, input);
    call.state = "called";
    call.metadata = metadata ?? call.metadata;
  }

  #grow(part: Growing, text: string): void {
    if (part.type === "custom" || text === "") return;
    const kept = part.type === "tool-call" ? text.slice(0, Math.max(0, inputCharsMax - part.chars)) : text;
    if (part.type === "tool-call") part.chars += text.length;
    this.#chars += kept.length;
    if (kept !== "") part.texts.push(kept);
  }

  /** Providers repeat metadata as they learn more; the last word counts. */
  #note(of: string, metadata: ProviderMetadata | undefined): void {
    const part = this.#open.get(of);
    if (part !== undefined && metadata !== undefined) part.metadata = metadata;
  }
}

const key = (kind: Growing["type"], id: string): string => `${kind} ${id}`;

const kindOf = (type: `${"text" | "reasoning"}-${string}`): "text" | "reasoning" =>
  type.startsWith("text") ? "text" : "reasoning";
