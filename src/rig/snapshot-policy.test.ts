import { describe, expect, test } from "vitest";
import { SnapshotPolicyError } from "../core/index.js";
import type { SnapshotPolicy } from "../session/index.js";
import { snapshotPolicyOf } from "./snapshot-policy.js";
import type { PolicySubject } from "./snapshot-policy.js";

const subjects: readonly (PolicySubject | undefined)[] = [
  { option: "exclusiveWorkspace", mode: "exclusive" },
  { option: "sessionWorkspaces", mode: "session" },
  { option: "sharedWorkspace", mode: "shared" },
  undefined,
];
const exclusive = subjects[0];

/** The policy, or the code of the refusal. */
function outcome(given: unknown, subject: PolicySubject | undefined): SnapshotPolicy | undefined | string {
  try {
    return snapshotPolicyOf(given, subject);
  } catch (error) {
    if (!(error instanceof SnapshotPolicyError)) throw error;
    return error.code;
  }
}

// What each value means, as written in S2; `undefined` is a value that is refused.
const triggers = new Map<unknown, SnapshotPolicy["trigger"] | undefined>([
  [undefined, "idle"],
  ["manual", "manual"],
  ["idle", "idle"],
  ["turn-done", "turn-done"],
  ["step-done", "step-done"],
  ["Idle", undefined],
  ["", undefined],
  ["baseline", undefined],
  [null, undefined],
  [1, undefined],
]);
const priorities = new Map<unknown, SnapshotPolicy["priority"] | undefined>([
  [undefined, "best-effort"],
  ["best-effort", "best-effort"],
  ["required", "required"],
  ["must", undefined],
  [null, undefined],
  [true, undefined],
]);
const timeouts = new Map<unknown, number | undefined>([
  [undefined, 60_000],
  [0, 60_000],
  [-0, 60_000],
  [1, 1],
  [0.5, 0.5],
  [120_000, 120_000],
  [2 ** 31, 2 ** 31 - 1],
  [Number.MAX_VALUE, 2 ** 31 - 1],
  [-1, undefined],
  [-0.001, undefined],
  [NaN, undefined],
  [Infinity, undefined],
  [-Infinity, undefined],
  ["1000", undefined],
  [null, undefined],
  [10n, undefined],
]);

describe("S2: every combination of trigger, priority, time-out and placement", () => {
  test.each(subjects)("under %j means what the table says", (subject) => {
    let combinations = 0;
    for (const [trigger, wantedTrigger] of triggers) {
      for (const [priority, wantedPriority] of priorities) {
        for (const [timeoutMs, wantedTimeout] of timeouts) {
          combinations++;
          const wanted =
            subject === undefined
              ? "snapshot_policy.without_workspace"
              : wantedTrigger === undefined
                ? "snapshot_policy.invalid_trigger"
                : wantedPriority === undefined
                  ? "snapshot_policy.invalid_priority"
                  : wantedTimeout === undefined
                    ? "snapshot_policy.invalid_timeout"
                    : subject.mode === "shared" && wantedPriority === "required"
                      ? "snapshot_policy.shared_required"
                      : { trigger: wantedTrigger, priority: wantedPriority, timeoutMs: wantedTimeout };
          expect([trigger, priority, timeoutMs, outcome({ trigger, priority, timeoutMs }, subject)]).toEqual([
            trigger,
            priority,
            timeoutMs,
            wanted,
          ]);
        }
      }
    }
    expect(combinations).toBe(triggers.size * priorities.size * timeouts.size);
  });
});

describe("S1", () => {
  test("a placement requires a policy", () => {
    for (const subject of subjects.slice(0, 3)) {
      expect(outcome(undefined, subject)).toBe("snapshot_policy.required");
      expect(outcome(null, subject)).toBe("snapshot_policy.required");
    }
    expect(() => snapshotPolicyOf(undefined, exclusive)).toThrow(
      expect.objectContaining({ details: { placement: "exclusiveWorkspace" } }),
    );
  });

  test("without a placement there is none, and giving one is refused", () => {
    expect(outcome(undefined, undefined)).toBeUndefined();
    for (const given of ["idle", {}, { trigger: "nonsense" }, null]) {
      expect(outcome(given, undefined)).toBe("snapshot_policy.without_workspace");
    }
  });

  test("a string is a trigger", () => {
    for (const trigger of ["manual", "idle", "turn-done", "step-done"]) {
      expect(outcome(trigger, exclusive)).toEqual({ trigger, priority: "best-effort", timeoutMs: 60_000 });
    }
    for (const given of ["required", "", 7, true, [], ["idle"]]) {
      expect(outcome(given, exclusive)).toBe("snapshot_policy.invalid_trigger");
    }
  });

  test("an empty policy is the default one", () => {
    expect(outcome({}, exclusive)).toEqual({ trigger: "idle", priority: "best-effort", timeoutMs: 60_000 });
  });

  test("a misspelt member is refused by name", () => {
    expect(() => snapshotPolicyOf({ trigger: "idle", timeout: 5 }, exclusive)).toThrow(
      expect.objectContaining({
        code: "rig_definition.invalid",
        details: { field: "snapshots.timeout", wanted: "one of trigger, priority, timeoutMs" },
      }),
    );
  });
});

test("the policy is frozen, and what is said of a wrong value is short", () => {
  expect(Object.isFrozen(snapshotPolicyOf("idle", exclusive))).toBe(true);
  try {
    snapshotPolicyOf({ trigger: "x".repeat(10_000) }, exclusive);
    expect.unreachable();
  } catch (error) {
    expect((error as Error).message.length).toBeLessThan(250);
  }
});
