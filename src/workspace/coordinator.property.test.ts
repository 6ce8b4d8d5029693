/**
 * The coordinator under interleavings: clients that wait, hold, release, abort and are revoked, in every order the
 * scheduler finds. Beside it runs a model that knows only the order of arrival and which scopes conflict.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLooprigError } from "../core/index.js";
import type { CallId, CanonicalRoot } from "../core/index.js";
import type { MutationScope, WorkspacePermit } from "./coordinator-contract.js";
import { placesOf } from "./coordinator-scope.js";
import { placesConflict } from "./coordinator-state.js";
import { createCoordinator } from "./coordinator.js";

const root = "/r" as CanonicalRoot;

const scope: fc.Arbitrary<MutationScope> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      operation: fc.constant("path-mutation" as const),
      paths: fc.array(fc.constantFrom("a", "a/x", "a/x/1", "/r/a/y", "b", "/r/b/x", "c"), {
        minLength: 1,
        maxLength: 2,
      }),
    }),
  },
  { weight: 1, arbitrary: fc.constant<MutationScope>({ operation: "whole-mutation" }) },
  { weight: 1, arbitrary: fc.constant<MutationScope>({ operation: "checkpoint" }) },
);

interface Client {
  readonly id: number;
  readonly scope: MutationScope;
  state: "new" | "live" | "gone";
  permit: WorkspacePermit | undefined;
  error: unknown;
}

const conflict = (a: Client, b: Client): boolean =>
  placesConflict(placesOf(a.scope, root, undefined), placesOf(b.scope, root, undefined));

describe("whatever the interleaving", () => {
  test("exactly the oldest of conflicting clients hold, nobody sleeps through a wake-up, nothing is left", async () => {
    const plan = fc.record({
      scope,
      end: fc.constantFrom("release", "abort", "abort", "revoke"),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(plan, { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        async (s, plans, loses) => {
          const lease = new AbortController();
          const coordinator = createCoordinator({
            root,
            health: { lost: lease.signal, assertHeld: () => lease.signal.throwIfAborted() },
          });
          /** In order of arrival. */
          const arrivals: Client[] = [];
          const clients = plans.map(({ scope }, id): Client => ({
            id,
            scope,
            state: "new",
            permit: undefined,
            error: undefined,
          }));

          const check = (): void => {
            const live = arrivals.filter(({ state }) => state === "live");
            const wanted = live.filter((one, i) => !live.slice(0, i).some((older) => conflict(older, one)));
            const held = live.filter(({ permit }) => permit !== undefined);
            if (lease.signal.aborted) {
              // Whoever held goes on to be counted; nobody was let in.
              expect(live).toEqual(held);
              for (const { permit } of held) expect(() => permit?.assertHeld()).toThrow();
            } else {
              expect(held.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
              for (const { permit } of held) permit?.assertHeld();
            }
            expect(coordinator.counts()).toEqual({ held: held.length, waiting: live.length - held.length });
          };

          for (const [i, client] of clients.entries()) {
            const { end } = plans[i] as (typeof plans)[number];
            const controller = new AbortController();
            void s.schedule(Promise.resolve(), `client ${i} asks`).then(() => {
              client.state = lease.signal.aborted || controller.signal.aborted ? "gone" : "live";
              arrivals.push(client);
              coordinator.acquire(client.scope, { signal: controller.signal }).then(
                (permit) => (client.permit = permit),
                (error: unknown) => {
                  client.error = error;
                  client.state = "gone";
                },
              );
            });
            void s.schedule(Promise.resolve(), `client ${i} ${end}s`).then(() => {
              if (end === "abort") controller.abort();
              else if (client.permit !== undefined) {
                client.state = "gone";
                if (end === "release") client.permit.release();
                else coordinator.revoke(client.permit);
              }
            });
          }
          if (loses) void s.schedule(Promise.resolve(), "the lease is lost").then(() => lease.abort(new Error("lost")));
          while (s.count() > 0) {
            await s.waitNext(1);
            await settled();
            check();
          }
          // Let go of everything, oldest first: whoever still waits must come in.
          for (const client of arrivals) {
            if (client.state !== "live") continue;
            expect(client.permit).toBeDefined();
            client.state = "gone";
            client.permit?.release();
            await settled();
            check();
          }
          expect(coordinator.idle()).toBe(true);
          for (const { error } of clients) {
            if (error !== undefined) {
              expect(isLooprigError(error, "coordinator.acquire_canceled", "workspace_root.lease_lost")).toBe(true);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test("calls that take several permits one after the other all come to an end", async () => {
    const call = fc.array(scope, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(call, { minLength: 2, maxLength: 5 }), async (s, calls) => {
        const coordinator = createCoordinator({ root });
        let ended = 0;
        calls.forEach((scopes, i) => {
          void (async () => {
            using view = coordinator.forCall(`call-${i}` as CallId);
            try {
              for (const next of scopes) {
                await s.schedule(Promise.resolve(), `call ${i} asks`);
                await view.acquire(next);
              }
            } catch (error) {
              expect(isLooprigError(error, "coordinator.reentry", "coordinator.deadlock")).toBe(true);
            }
            await s.schedule(Promise.resolve(), `call ${i} ends`);
            ended++;
          })();
        });
        while (s.count() > 0) {
          await s.waitNext(1);
          await settled();
        }
        expect(ended).toBe(calls.length);
        expect(coordinator.idle()).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

/** Everything that was settled has been heard of. */
const settled = async (): Promise<void> => {
  for (let i = 0; i < 8; i++) await Promise.resolve();
};
