import { describe, expect, test } from "vitest";
import type * as errors from "./errors.js";
import { CoordinatorError, isLooprigError, LooprigError, WorkspaceRootLeaseLostError } from "./errors.js";
import type { CanonicalRoot } from "./ids.js";

const make = (): LooprigError<"session.unknown"> =>
  new LooprigError("session.unknown", 'No session is called "x"', { given: "x" }, { hint: "looprig sessions" });

describe("an error of ours", () => {
  test("is known by its code, which narrows its details", () => {
    const error: unknown = make();
    expect(isLooprigError(error)).toBe(true);
    expect(isLooprigError(error, "session.busy", "ref.invalid")).toBe(false);
    if (!isLooprigError(error, "session.busy", "session.unknown")) throw new Error("not narrowed");
    if (error.code === "session.unknown") expect(error.details.given).toBe("x");
  });

  test("is known across duplicate installs, where instanceof fails", async () => {
    const copy = "./errors.js?duplicate";
    const duplicate = (await import(/* @vite-ignore */ copy)) as typeof errors;
    const foreign: unknown = new duplicate.LooprigError("ref.invalid", "bad", { given: "x" });
    expect(foreign).not.toBeInstanceOf(LooprigError);
    expect(isLooprigError(foreign, "ref.invalid")).toBe(true);
    expect(duplicate.isLooprigError(make(), "session.unknown")).toBe(true);
  });

  test("is not what only looks like one", () => {
    for (const other of [undefined, null, "ref.invalid", new Error("x"), { code: "ref.invalid", "~looprig": true }]) {
      expect(isLooprigError(other)).toBe(false);
    }
  });

  test("has a stable JSON form, without stack or cause", () => {
    const cause = new Error("secret");
    const error = new LooprigError("ref.invalid", "bad", { given: "x" }, { cause });
    expect(error.cause).toBe(cause);
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: "LooprigError",
      code: "ref.invalid",
      message: "bad",
      details: { given: "x" },
    });
    expect(make().toJSON()).toMatchObject({ hint: "looprig sessions" });
    expect("cause" in make()).toBe(false);
  });

  test("bears the name of its area's class, and says whether to try again", () => {
    const error = new WorkspaceRootLeaseLostError("workspace_root.lease_lost", "lost", { root: "/r" as CanonicalRoot });
    expect([error.name, error.retryable]).toEqual(["WorkspaceRootLeaseLostError", false]);
    const busy = new CoordinatorError("coordinator.revoked", "r", { operation: "o" }, { retryable: true });
    expect([busy.name, busy.retryable]).toEqual(["CoordinatorError", true]);
  });
});
