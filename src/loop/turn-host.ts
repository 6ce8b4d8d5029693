/** What a turn needs of the session that drives it, and of the tools it calls: the smallest thing. */
import type { CallId, Json } from "../core/index.js";
import type { NewEvent } from "../session-store/index.js";
import type { Validation, ToolResult } from "../tool/index.js";

export type LivePart =
  | { readonly type: "text-delta"; readonly text: string }
  | { readonly type: "tool-progress"; readonly callId: CallId; readonly text: string };

export interface GatedCall {
  readonly callId: CallId;
  readonly tool: string;
  /** As the model wrote it, parsed. */
  readonly input: Json;
}

export type Approval = { readonly approve: true } | { readonly approve: false; readonly reason?: string | undefined };

/**
 * The session's half. What `journal`, `beforeModelCall`, `afterStep` and (without an abort) `approve` reject with ends the
 * turn and is what `runTurn` rejects with; nothing is begun after it.
 */
export interface TurnHost {
  /**
   * Appends in order of calls; durable when it resolves. Events bear `loopId`, `turnId` and `stepId` already. At most 100
   * in one call. Called also after the turn's signal has aborted: what happened is recorded.
   */
  journal(events: readonly NewEvent[]): Promise<void>;
  /**
   * An output that is too long to be shown: kept whole, and named, for a tool of the loop that can read it. Undefined where
   * there is none.
   */
  keep?(callId: CallId, text: string): string | undefined;
  /** Not awaited; must not throw. */
  live(part: LivePart): void;
  /**
   * Before each call of the model, retries not counted; `step` from 1. Resolves with events that the session journaled
   * meanwhile and that the model is to hear of in this call: what another session restored beneath the turn (U8).
   */
  beforeModelCall?(step: number): Promise<readonly NewEvent[]>;
  /** After `step-done` is durable. */
  afterStep?(step: number): Promise<void>;
  /**
   * Asks for a yes, once per call that needs one, before anything of it runs. The session journals the gate. After an
   * abort the answer is not waited for.
   */
  approve(call: GatedCall, signal: AbortSignal): Promise<Approval>;
  /**
   * The call was interrupted and has not ended within its grace (C6): called before its outcome is journaled as unknown,
   * so that its permits are gone first. `settled` resolves when the tool ends after all, perhaps never.
   */
  abandoned?(call: { readonly callId: CallId; readonly tool: string; readonly settled: Promise<void> }): void;
}

/** A tool as the loop calls it. What `bindTools` makes is one. */
export interface TurnTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: unknown;
  validate(input: unknown, options?: { readonly signal?: AbortSignal | undefined }): Promise<Validation>;
  needsApproval(value: unknown): Promise<boolean>;
  execute(value: unknown, context: TurnCallContext): Promise<ToolResult>;
}

export interface TurnCallContext {
  readonly signal: AbortSignal;
  readonly callId: CallId;
  /** Shown while the call runs; never kept. */
  readonly progress: (text: string) => void;
}
