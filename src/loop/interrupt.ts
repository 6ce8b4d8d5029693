import { shortened } from "./plain-text.js";

/** Why a turn was interrupted, in the words of whoever did it. */
export function interruptReason({ reason }: AbortSignal): string {
  const given: unknown = reason;
  if (typeof given === "string" && given !== "") return shortened(given, 500);
  // What `abort()` without a reason, and the platform's own time-outs, come with says nothing of ours.
  if (given instanceof Error && given.name !== "AbortError" && given.message !== "") {
    return shortened(given.message, 500);
  }
  return "interrupted";
}
