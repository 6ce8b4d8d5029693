import type { CallId, SessionId, StepId, TurnId } from "../core/index.js";

/** What the journals say of the call that left a path as it is. Each is absent where they do not. */
export interface ChangedByCall {
  /** The tool call; for `exec` the one call of its turn. */
  readonly callId?: CallId;
  /** The model's message that asked for the call. */
  readonly stepId?: StepId;
  readonly tool?: string;
  /** The command that ran while the path changed. */
  readonly command?: string;
}

/**
 * Who changed a path (U1). `recorded`: a file tool's own write. `window`: changed while a process of that session ran, so
 * someone else may have written it. `foreign`: present content that no record of ours explains.
 */
export type ChangedBy =
  | (ChangedByCall & {
      readonly kind: "session";
      readonly strength: "recorded" | "window";
      readonly sessionId: SessionId;
      readonly turnId: TurnId;
      /** `t<turn>` among the root's turns; absent while what this program does by itself has not become a turn. */
      readonly turn?: number;
      /** Other sessions at work on the path at the same time, of which nobody knows who wrote what: a conflict for each. */
      readonly overlaps?: readonly Overlap[];
    })
  | (ChangedByCall & {
      readonly kind: "other-session";
      readonly strength: "recorded" | "window";
      readonly sessionId: SessionId;
      readonly turnId?: TurnId;
      readonly turn?: number;
      readonly overlaps?: readonly Overlap[];
    })
  | { readonly kind: "foreign" };

/** A turn of another session that changed the same path in the same span. */
export interface Overlap {
  readonly sessionId: SessionId;
  readonly turn: number;
}
