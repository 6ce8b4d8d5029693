import type { SessionEvent } from "../session-store/index.js";

/** However it ended. */
export const isTurnEnd = (event: SessionEvent): boolean =>
  event.type === "turn-done" || event.type === "turn-failed" || event.type === "turn-interrupted";
