import type { SessionId, TurnId } from "../core/index.js";

/**
 * Who changed a path (U1). `recorded`: a file tool's own write. `window`: changed while a process of that session ran, so
 * someone else may have written it. `foreign`: present content that no record of ours explains.
 */
export type ChangedBy =
  | {
      readonly kind: "session";
      readonly strength: "recorded" | "window";
      readonly sessionId: SessionId;
      readonly turnId: TurnId;
      /** `t<turn>` among the root's turns; absent while what this program does by itself has not become a turn. */
      readonly turn?: number;
      readonly tool?: string;
    }
  | {
      readonly kind: "other-session";
      readonly strength: "recorded" | "window";
      readonly sessionId: SessionId;
      readonly turn?: number;
      readonly tool?: string;
    }
  | { readonly kind: "foreign" };
