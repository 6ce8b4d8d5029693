import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isLooprigError } from "../core/index.js";
import type { CallId, CanonicalRoot } from "../core/index.js";
import type { MutationScope, WorkspacePermit } from "./coordinator-contract.js";
import { createCoordinator } from "./coordinator.js";

const root = "/place/tree" as CanonicalRoot;
const whole: MutationScope = { operation: "whole-mutation" };
const checkpoint: MutationScope = { operation: "checkpoint" };
const paths = (...list: string[]): MutationScope => ({ operation: "path-mutation", paths: list });
const callId = (name: string): CallId => name as CallId;

/** What has become of an acquisition so far. */
function watch(promise: Promise<WorkspacePermit>): { permit?: WorkspacePermit; error?: unknown } {
  const seen: { permit?: WorkspacePermit; error?: unknown } = {};
  promise.then(
    (permit) => (seen.permit = permit),
    (error: unknown) => (seen.error = error),
  );
  return seen;
}

const codeOf = async (promise: Promise<unknown>): Promise<string | undefined> =>
  promise.then(
    () => undefined,
    (error: unknown) => (isLooprigError(error) ? error.code : String(error)),
  );

function fakeLease() {
  const controller = new AbortController();
  let held = true;
  return {
    lost: controller.signal,
    assertHeld: () => {
      if (!held) throw new Error("the lease is not ours");
    },
    expireSilently: () => (held = false),
    lose: () => controller.abort(new Error("the store went away")),
  };
}

describe("exclusion (C1)", () => {
  test.each([
    ["one path", paths("a/b"), paths("a/b")],
    ["a path and its ancestor", paths("a/b/c"), paths("a")],
    ["a path and what lies below it", paths("a"), paths("a/b/c")],
    ["an absolute and a relative spelling", paths("/place/tree/a/b"), paths("a/b")],
    ["the root named as a path and any path", paths("/place/tree"), paths("z")],
    ["one of several paths", paths("x", "a/b"), paths("a/b", "y")],
    ["a path and the whole tree", paths("a"), whole],
    ["the whole tree and a path", whole, paths("a")],
    ["a path and a checkpoint", paths("a"), checkpoint],
    ["a checkpoint and the whole tree", checkpoint, whole],
    ["two checkpoints", checkpoint, checkpoint],
    ["two whole-tree mutations", whole, whole],
  ])("%s: the second waits until the first is released", async (_, first, second) => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(first);
    const waiting = watch(coordinator.acquire(second));
    await nextTurn();
    expect(waiting.permit).toBeUndefined();
    expect(coordinator.counts()).toEqual({ held: 1, waiting: 1 });
    held.release();
    await nextTurn();
    waiting.permit?.assertHeld();
    waiting.permit?.release();
    expect(coordinator.idle()).toBe(true);
  });

  test.each([
    ["siblings", paths("a/b"), paths("a/c")],
    ["a name and one it is the beginning of", paths("a/b"), paths("a/bc")],
    ["several paths each", paths("a", "b/c"), paths("b/d", "c")],
  ])("%s are held together", async (_, first, second) => {
    const coordinator = createCoordinator({ root });
    using one = await coordinator.acquire(first);
    using two = await coordinator.acquire(second);
    one.assertHeld();
    two.assertHeld();
  });

  test("names that are one on the volume are one path", async () => {
    const coordinator = createCoordinator({ root, fold: (name) => name.toLowerCase() });
    using _held = await coordinator.acquire(paths("src/Main.ts"));
    const waiting = watch(coordinator.acquire(paths("SRC/main.TS")));
    await nextTurn();
    expect(waiting.permit).toBeUndefined();
    expect(coordinator.counts()).toEqual({ held: 1, waiting: 1 });
  });

  test("several paths are granted together or not at all", async () => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(paths("b"));
    const both = watch(coordinator.acquire(paths("a", "b")));
    // "a" is free, but an older request wants it.
    const later = watch(coordinator.acquire(paths("a")));
    await nextTurn();
    expect([both.permit, later.permit]).toEqual([undefined, undefined]);
    held.release();
    await nextTurn();
    expect(both.permit).toBeDefined();
    expect(later.permit).toBeUndefined();
    both.permit?.release();
    await nextTurn();
    expect(later.permit).toBeDefined();
  });

  test("paths that cover each other in one request are one claim", async () => {
    const coordinator = createCoordinator({ root });
    const permit = await coordinator.acquire(paths("a/b", "a", "a/b/c", "a"));
    permit.release();
    expect(coordinator.idle()).toBe(true);
    (await coordinator.acquire(whole)).release();
  });
});

describe("fairness (C2)", () => {
  test("nobody passes an older request it conflicts with; disjoint ones do", async () => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(paths("a"));
    const order: string[] = [];
    const enter = async (name: string, scope: MutationScope): Promise<void> => {
      using _permit = await coordinator.acquire(scope);
      order.push(name);
    };
    const all = [
      enter("checkpoint", checkpoint),
      enter("b", paths("b")),
      enter("whole", whole),
      enter("a", paths("a")),
    ];
    await nextTurn();
    expect(order).toEqual([]);
    held.release();
    await Promise.all(all);
    expect(order).toEqual(["checkpoint", "b", "whole", "a"]);
    const first = await coordinator.acquire(paths("a"));
    const queued = coordinator.acquire(paths("a/x"));
    (await coordinator.acquire(paths("b"))).release();
    first.release();
    (await queued).release();
  });

  test("a release wakes everybody it held up, in order of arrival", async () => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(whole);
    const order: number[] = [];
    const waiting = Array.from({ length: 100 }, async (_, i) => {
      using _permit = await coordinator.acquire(paths(`dir${i % 7}/file${i}`));
      order.push(i);
    });
    held.release();
    await Promise.all(waiting);
    expect(order).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  test("edits to different files overlap in time", async () => {
    const coordinator = createCoordinator({ root });
    let inside = 0;
    let most = 0;
    const edit = async (path: string): Promise<void> => {
      using _permit = await coordinator.acquire(paths(path));
      most = Math.max(most, ++inside);
      await nextTurn();
      inside--;
    };
    await Promise.all([edit("a"), edit("b"), edit("c"), edit("c")]);
    expect(most).toBe(3);
  });
});

describe("a cancelled wait (C3)", () => {
  test("rejects with the signal's reason as cause, leaves nothing and wakes whom it blocked", async () => {
    const coordinator = createCoordinator({ root });
    using _held = await coordinator.acquire(paths("a"));
    const controller = new AbortController();
    const canceled = watch(coordinator.acquire(whole, { signal: controller.signal }));
    const blocked = watch(coordinator.acquire(paths("b")));
    await nextTurn();
    expect(blocked.permit).toBeUndefined();
    const reason = new Error("enough");
    controller.abort(reason);
    await nextTurn();
    expect(canceled.error).toMatchObject({ code: "coordinator.acquire_canceled", cause: reason });
    expect(blocked.permit).toBeDefined();
    expect(coordinator.counts()).toEqual({ held: 2, waiting: 0 });
  });

  test("of a signal that has aborted before never enters", async () => {
    const coordinator = createCoordinator({ root });
    expect(await codeOf(coordinator.acquire(whole, { signal: AbortSignal.abort() }))).toBe(
      "coordinator.acquire_canceled",
    );
    expect(coordinator.idle()).toBe(true);
  });

  test("in the step of its grant is the caller's permit, held once and given back once", async () => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(whole);
    const controller = new AbortController();
    const waiting = coordinator.acquire(whole, { signal: controller.signal });
    held.release();
    controller.abort();
    const permit = await waiting;
    permit.assertHeld();
    permit.release();
    expect(coordinator.idle()).toBe(true);
  });

  test("an aborted waiter never holds the permit", async () => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(whole);
    const controller = new AbortController();
    const waiting = watch(coordinator.acquire(whole, { signal: controller.signal }));
    controller.abort();
    held.release();
    await nextTurn();
    expect(waiting.permit).toBeUndefined();
    expect(coordinator.idle()).toBe(true);
  });

  test("a thousand waiters on one signal put one listener on it, and take it off", async () => {
    const coordinator = createCoordinator({ root });
    const held = await coordinator.acquire(whole);
    const controller = new AbortController();
    const { signal } = controller;
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>): void => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>): void => {
      listeners--;
      remove(...args);
    };
    const waiting = Array.from({ length: 1000 }, async (_, i) =>
      (await coordinator.acquire(i % 2 === 0 ? whole : paths("a"), { signal })).release(),
    );
    expect(listeners).toBe(1);
    held.release();
    await Promise.all(waiting);
    expect(listeners).toBe(0);
    expect(coordinator.idle()).toBe(true);
  });
});

describe("a permit", () => {
  test("is released once, however often it is asked", async () => {
    const coordinator = createCoordinator({ root });
    const first = await coordinator.acquire(whole);
    first.release();
    const second = await coordinator.acquire(whole);
    first.release();
    first[Symbol.dispose]();
    second.assertHeld();
    expect(coordinator.counts()).toEqual({ held: 1, waiting: 0 });
    expect(() => first.assertHeld()).toThrow(expect.objectContaining({ code: "coordinator.revoked" }));
    expect(first.revoked.aborted).toBe(false);
  });

  test("that is revoked says so, refuses the commit and lets the next one in", async () => {
    const coordinator = createCoordinator({ root });
    const permit = await coordinator.acquire(paths("a"));
    const next = watch(coordinator.acquire(whole));
    const { revoked } = permit;
    coordinator.revoke(permit);
    await nextTurn();
    expect(revoked.aborted).toBe(true);
    expect(() => permit.assertHeld()).toThrow(expect.objectContaining({ code: "coordinator.revoked" }));
    next.permit?.assertHeld();
    permit.release();
    coordinator.revoke(permit);
    expect(coordinator.counts()).toEqual({ held: 1, waiting: 0 });
  });

  test("whose revocation is looked at late still shows it", async () => {
    const coordinator = createCoordinator({ root });
    const permit = await coordinator.acquire(paths("a"));
    coordinator.revoke(permit);
    expect(permit.revoked.aborted).toBe(true);
    expect(permit.revoked.reason).toMatchObject({ code: "coordinator.revoked" });
  });

  test("may be released from the listener of its own revocation", async () => {
    const coordinator = createCoordinator({ root });
    const permit = await coordinator.acquire(whole);
    permit.revoked.addEventListener("abort", () => permit.release());
    const next = coordinator.acquire(whole);
    coordinator.revoke(permit);
    (await next).release();
    expect(coordinator.idle()).toBe(true);
  });
});

describe("a call (C4)", () => {
  test("that asks for what conflicts with its own permit is told, never left waiting", async () => {
    const coordinator = createCoordinator({ root });
    const call = coordinator.forCall(callId("one"));
    const permit = await call.acquire(paths("src"));
    for (const scope of [paths("src/a"), paths("src"), whole, checkpoint]) {
      await expect(call.acquire(scope)).rejects.toMatchObject({
        code: "coordinator.reentry",
        details: { operation: scope.operation, held: "path-mutation of src" },
      });
    }
    (await call.acquire(paths("docs"))).release();
    permit.release();
    (await call.acquire(whole)).release();
    expect(coordinator.idle()).toBe(true);
  });

  test("has one view, so a second look at it cannot hide what it holds", async () => {
    const coordinator = createCoordinator({ root });
    using _permit = await coordinator.forCall(callId("one")).acquire(whole);
    expect(await codeOf(coordinator.forCall(callId("one")).acquire(paths("a")))).toBe("coordinator.reentry");
  });

  test("waits for the permits of others", async () => {
    const coordinator = createCoordinator({ root });
    const other = await coordinator.forCall(callId("one")).acquire(whole);
    const waiting = watch(coordinator.forCall(callId("two")).acquire(whole));
    await nextTurn();
    expect(waiting).toEqual({});
    other.release();
    await nextTurn();
    expect(waiting.permit).toBeDefined();
  });

  test("that is given up loses its permits and its waits, and gets no more", async () => {
    const coordinator = createCoordinator({ root });
    using _other = await coordinator.acquire(paths("b"));
    const call = coordinator.forCall(callId("one"));
    const held = await call.acquire(paths("a"));
    const waiting = watch(call.acquire(paths("b")));
    const next = watch(coordinator.acquire(paths("a")));
    coordinator.revoke(callId("one"));
    await nextTurn();
    expect(held.revoked.aborted).toBe(true);
    expect(waiting.error).toMatchObject({ code: "coordinator.revoked" });
    expect(next.permit).toBeDefined();
    expect(await codeOf(call.acquire(paths("c")))).toBe("coordinator.revoked");
    expect(await codeOf(coordinator.forCall(callId("one")).acquire(paths("c")))).toBe("coordinator.revoked");
    expect(coordinator.counts()).toEqual({ held: 2, waiting: 0 });
  });

  test("that has settled leaves nothing behind", async () => {
    const coordinator = createCoordinator({ root });
    const call = coordinator.forCall(callId("one"));
    const forgotten = await call.acquire(whole);
    call[Symbol.dispose]();
    expect(coordinator.idle()).toBe(true);
    expect(() => forgotten.assertHeld()).toThrow();
    expect(coordinator.forCall(callId("one"))).not.toBe(call);
  });

  test("is refused instead of closing a circle of two calls that hold and wait", async () => {
    const coordinator = createCoordinator({ root });
    const one = coordinator.forCall(callId("one"));
    const two = coordinator.forCall(callId("two"));
    const a = await one.acquire(paths("a"));
    const b = await two.acquire(paths("b"));
    const waiting = watch(one.acquire(paths("b")));
    expect(await codeOf(two.acquire(paths("a")))).toBe("coordinator.deadlock");
    b.release();
    await nextTurn();
    waiting.permit?.release();
    a.release();
    expect(coordinator.idle()).toBe(true);
  });

  test("is refused instead of waiting behind a checkpoint that waits for it", async () => {
    const coordinator = createCoordinator({ root });
    const call = coordinator.forCall(callId("one"));
    const a = await call.acquire(paths("a"));
    const pending = watch(coordinator.acquire(checkpoint));
    expect(await codeOf(call.acquire(paths("b")))).toBe("coordinator.deadlock");
    a.release();
    await nextTurn();
    expect(pending.permit).toBeDefined();
  });
});

describe("the loss of the lease", () => {
  test("closes admission, refuses the waiters, tells the holders and fails their commits", async () => {
    const lease = fakeLease();
    const coordinator = createCoordinator({ root, health: lease });
    const held = await coordinator.acquire(paths("a"));
    const { revoked } = held;
    const waiting = [watch(coordinator.acquire(whole)), watch(coordinator.acquire(paths("b")))];
    held.assertHeld();
    lease.lose();
    await nextTurn();
    const lost = { code: "workspace_root.lease_lost", details: { root } };
    for (const { permit, error } of waiting) {
      expect(permit).toBeUndefined();
      expect(error).toMatchObject(lost);
    }
    expect(revoked.aborted).toBe(true);
    expect(() => held.assertHeld()).toThrow(expect.objectContaining(lost));
    expect(() => coordinator.assertHealthy()).toThrow(expect.objectContaining(lost));
    await expect(coordinator.acquire(paths("c"))).rejects.toMatchObject(lost);
    expect(coordinator.counts()).toEqual({ held: 1, waiting: 0 });
    held.release();
    expect(coordinator.idle()).toBe(true);
  });

  test("is final as soon as the probe says so, before any signal", async () => {
    const lease = fakeLease();
    const coordinator = createCoordinator({ root, health: lease });
    const held = await coordinator.acquire(whole);
    const waiting = watch(coordinator.acquire(whole));
    lease.expireSilently();
    expect(() => held.assertHeld()).toThrow(expect.objectContaining({ code: "workspace_root.lease_lost" }));
    await nextTurn();
    expect(waiting.error).toMatchObject({ code: "workspace_root.lease_lost" });
  });

  test("before the coordinator was made admits nobody", async () => {
    const lease = fakeLease();
    lease.lose();
    const coordinator = createCoordinator({ root, health: lease });
    expect(await codeOf(coordinator.acquire(whole))).toBe("workspace_root.lease_lost");
  });

  test("never happens where there is no lease", () => {
    createCoordinator({ root }).assertHealthy();
  });
});

describe("a scope of the wrong shape", () => {
  test.each([
    [undefined, "invalid_operation"],
    [{ operation: "delete" }, "invalid_operation"],
    [{ operation: "path-mutation" }, "invalid_operation"],
    [{ operation: "path-mutation", paths: [] }, "invalid_operation"],
    [{ operation: "checkpoint", paths: ["a"] }, "invalid_operation"],
    [{ operation: "path-mutation", paths: [""] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["a", 7] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["a/../b"] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["./a"] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["a//b"] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["a/"] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["a\0"] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["/elsewhere/a"] }, "invalid_path"],
    [{ operation: "path-mutation", paths: ["/place/treehouse"] }, "invalid_path"],
  ])("%j rejects with coordinator.%s", async (scope, code) => {
    const coordinator = createCoordinator({ root });
    expect(await codeOf(coordinator.acquire(scope as unknown as MutationScope))).toBe(`coordinator.${code}`);
    expect(coordinator.idle()).toBe(true);
  });
});
