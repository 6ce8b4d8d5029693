/** The policy of automatic captures (S1, S2): what was given, checked and completed. Pure. */
import { SnapshotPolicyError } from "../core/index.js";
import type { PlacementDefinition, SnapshotPolicy } from "../session/index.js";
import { membersOf, shown } from "./refusals.js";

const triggers: readonly SnapshotPolicy["trigger"][] = ["manual", "idle", "turn-done", "step-done"];
const priorities: readonly SnapshotPolicy["priority"][] = ["best-effort", "required"];
const defaultTimeoutMs = 60_000;
/** What a timer can hold: 24.8 days. A longer one would fire at once. */
const timeoutMsMax = 2 ** 31 - 1;

/** The placement the policy is for: its option's name and mode. */
export interface PolicySubject {
  readonly option: string;
  readonly mode: PlacementDefinition["mode"];
}

/** The complete policy, or undefined where there is no placement. Throws `snapshot_policy.*`. */
export function snapshotPolicyOf(given: unknown, subject: PolicySubject | undefined): SnapshotPolicy | undefined {
  if (subject === undefined) {
    if (given === undefined) return undefined;
    throw new SnapshotPolicyError(
      "snapshot_policy.without_workspace",
      'Cannot define the rig: it has "snapshots" and no placement, so there is nothing to capture; add a placement, or leave them out',
      {},
    );
  }
  if (given === undefined || given === null) {
    throw new SnapshotPolicyError(
      "snapshot_policy.required",
      `Cannot define the rig: it has "${subject.option}" and no "snapshots"; say when the tree is captured, as in snapshots: "idle"`,
      { placement: subject.option },
    );
  }
  const { trigger, priority, timeoutMs } = partsOf(given);
  const policy = Object.freeze({
    trigger: triggerOf(trigger),
    priority: priorityOf(priority),
    timeoutMs: timeoutOf(timeoutMs),
  });
  if (subject.mode === "shared" && policy.priority === "required") {
    throw new SnapshotPolicyError(
      "snapshot_policy.shared_required",
      'Cannot define the rig: snapshots of a shared workspace cannot be "required", since others write to it and no boundary holds still; use "best-effort", or an exclusive workspace',
      {},
    );
  }
  return policy;
}

/** A string is a trigger, and so is whatever else is not an object. */
function partsOf(given: unknown): { readonly [member: string]: unknown } {
  if (typeof given !== "object" || Array.isArray(given)) return { trigger: given };
  return membersOf(given, "snapshots", ["trigger", "priority", "timeoutMs"]);
}

function triggerOf(given: unknown = "idle"): SnapshotPolicy["trigger"] {
  const trigger = triggers.find((known) => known === given);
  if (trigger !== undefined) return trigger;
  throw new SnapshotPolicyError(
    "snapshot_policy.invalid_trigger",
    `Cannot define the rig: ${shown(given)} is no trigger of snapshots, wanted one of ${triggers.join(", ")}`,
    { given: shown(given), known: triggers },
  );
}

function priorityOf(given: unknown = "best-effort"): SnapshotPolicy["priority"] {
  const priority = priorities.find((known) => known === given);
  if (priority !== undefined) return priority;
  throw new SnapshotPolicyError(
    "snapshot_policy.invalid_priority",
    `Cannot define the rig: ${shown(given)} is no priority of snapshots, wanted one of ${priorities.join(", ")}`,
    { given: shown(given), known: priorities },
  );
}

function timeoutOf(given: unknown = 0): number {
  if (typeof given !== "number" || !Number.isFinite(given) || given < 0) {
    throw new SnapshotPolicyError(
      "snapshot_policy.invalid_timeout",
      `Cannot define the rig: ${shown(given)} is no time-out of snapshots, wanted milliseconds from 0, where 0 means ${defaultTimeoutMs}`,
      { given: shown(given) },
    );
  }
  return given === 0 ? defaultTimeoutMs : Math.min(given, timeoutMsMax);
}
