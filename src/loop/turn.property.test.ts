/**
 * Turns in every interleaving: fast-check's scheduler decides which append, tool, answer, interrupt or failure comes next.
 * What must hold in all of them is the order of the journal (E2), that nothing is lost, and that no call runs twice.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallId } from "../core/index.js";
import type { NewEvent } from "../session-store/index.js";
import { callsOf } from "./conversation.js";
import { calls, fakeModel, finish, says } from "./testing/models.js";
import { fakeTool, ofType, recordingHost, turnOf } from "./testing/turns.js";
import type { TurnTool } from "./turn-host.js";
import { runTurn } from "./turn.js";
import type { TurnOutcome } from "./turn.js";

type Behaviour = "works" | "throws" | "heeds" | "ignores" | "gated" | "refused";

interface Scenario {
  /** The calls of each step, by how their tool behaves; the last step is the reply. */
  readonly steps: readonly (readonly Behaviour[])[];
  readonly interrupted: boolean;
  /** Which append fails, counted from 0; none when it is beyond the last. */
  readonly failingAppend: number | undefined;
}

const behaviour = fc.constantFrom<Behaviour>("works", "throws", "heeds", "ignores", "gated", "refused");

/** Tools that end only on an interrupt are for turns that have one. */
const scenario: fc.Arbitrary<Scenario> = fc
  .record({
    steps: fc.array(fc.array(behaviour, { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
    interrupted: fc.boolean(),
    failingAppend: fc.option(fc.nat(20), { nil: undefined, freq: 3 }),
  })
  .map((given) =>
    given.interrupted
      ? given
      : {
          ...given,
          steps: given.steps.map((step) =>
            step.map((each) => (each === "heeds" || each === "ignores" ? "works" : each)),
          ),
        },
  );

interface Observed {
  readonly durable: readonly NewEvent[];
  /** In the order in which it happened: appends that became durable, and tools that began. */
  readonly trace: readonly string[];
  readonly executions: readonly CallId[];
  /** Calls that had not ended when the turn had. */
  readonly executingAtEnd: readonly CallId[];
  /** Calls the loop gave up, and said so. */
  readonly abandoned: readonly CallId[];
  /** Appends that were asked for once one had failed. */
  readonly appendsAfterFailure: number;
  readonly outcome: TurnOutcome | undefined;
  readonly failure: unknown;
}

async function play(scheduler: fc.Scheduler, { steps, interrupted, failingAppend }: Scenario): Promise<Observed> {
  const turnsWait = (label: string): Promise<void> =>
    scheduler.schedule(Promise.resolve(), label).then(() => undefined);
  const trace: string[] = [];
  const durable: NewEvent[] = [];
  const executions: CallId[] = [];
  const executing = new Set<CallId>();
  const abandoned: CallId[] = [];
  let appends = 0;
  let failed = false;
  let appendsAfterFailure = 0;
  const host = recordingHost({
    async journal(events) {
      const append = appends++;
      if (failed) appendsAfterFailure += 1;
      await turnsWait("append");
      failed ||= append === failingAppend;
      if (append === failingAppend) throw new Error("disk full");
      durable.push(...events);
      for (const event of events) {
        trace.push("callId" in event ? `${event.type} ${event.callId}` : event.type);
      }
    },
    abandoned: ({ callId }) => void abandoned.push(callId),
    async approve({ tool }) {
      await turnsWait("gate");
      return tool === "refused" ? { approve: false } : { approve: true };
    },
  });
  const tool = (name: Behaviour): TurnTool =>
    fakeTool(
      name,
      async (_, { signal, callId }) => {
        executions.push(callId);
        trace.push(`runs ${callId}`);
        executing.add(callId);
        if (name === "ignores") return new Promise<never>(() => undefined);
        if (name === "heeds") {
          await new Promise<void>((resolve) => {
            if (signal.aborted) resolve();
            signal.addEventListener("abort", () => resolve(), { once: true });
          });
        }
        await turnsWait("tool");
        executing.delete(callId);
        if (name === "throws") throw new Error("no such file");
        return "fine";
      },
      { needsApproval: async () => name === "gated" || name === "refused" },
    );
  const model = fakeModel(async (call) => {
    await turnsWait("model");
    const step = steps[call - 1];
    return step === undefined
      ? [...says("done"), finish()]
      : [...step.map((name, index) => calls(name, {}, `${call}.${index}`)), finish("tool-calls")];
  });
  const controller = new AbortController();
  if (interrupted) void turnsWait("interrupt").then(() => controller.abort("stop"));
  const names: readonly Behaviour[] = ["works", "throws", "heeds", "ignores", "gated", "refused"];
  const turn = runTurn(
    turnOf(model, host, names.map(tool), {
      signal: controller.signal,
      // The grace of a call ends whenever the scheduler says; a model's silence never.
      timer: {
        after(ms, callback) {
          let waiting = ms === 5_000;
          if (waiting) void turnsWait("grace").then(() => waiting && callback());
          return () => {
            waiting = false;
          };
        },
      },
    }),
  );
  const [result] = await scheduler.waitFor(Promise.allSettled([turn]));
  return {
    durable,
    trace,
    executions,
    executingAtEnd: [...executing],
    abandoned,
    appendsAfterFailure,
    outcome: result.status === "fulfilled" ? result.value : undefined,
    failure: result.status === "rejected" ? result.reason : undefined,
  };
}

const at = (trace: readonly string[], entry: string): number => trace.indexOf(entry);

describe("in every interleaving a turn", () => {
  it("journals in order, loses nothing and runs no call twice", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), scenario, async (scheduler, given) => {
        const { durable, trace, executions, outcome, failure } = await play(scheduler, given);

        expect(new Set(executions).size).toBe(executions.length);
        for (const callId of executions) {
          expect(at(trace, `tool-started ${callId}`)).toBeGreaterThanOrEqual(0);
          expect(at(trace, `tool-started ${callId}`)).toBeLessThan(at(trace, `runs ${callId}`));
        }
        const ended = ofType(durable, "tool-done").map(({ callId }) => callId);
        expect(new Set(ended).size).toBe(ended.length);

        let open: readonly CallId[] | undefined;
        for (const event of durable) {
          if (event.type === "step-started") {
            expect(open).toBeUndefined();
            open = callsOf(event).map(({ callId }) => callId);
          } else if (event.type === "tool-started") {
            expect(open).toContain(event.callId);
          } else if (event.type === "tool-done") {
            expect(open).toContain(event.callId);
            open = open?.filter((callId) => callId !== event.callId);
          } else if (event.type === "step-done") {
            expect(open).toEqual([]);
            open = undefined;
          }
        }

        if (failure !== undefined) {
          expect(failure).toMatchObject({ message: "disk full" });
          return;
        }
        expect(open).toBeUndefined();
        expect(outcome?.status).toMatch(given.interrupted ? /^(?:done|interrupted)$/ : /^done$/);
        for (const { callId, outcome: how } of ofType(durable, "tool-done")) {
          // What never began is not called an outcome, and what began is never called refused without having run.
          if (how === "refused") expect(executions).not.toContain(callId);
          if (how === "unknown" || how === "ok") expect(executions).toContain(callId);
        }
        const all = ofType(durable, "step-started").flatMap((event) => callsOf(event));
        expect(ended).toHaveLength(all.length);
        if (outcome?.status === "done") expect(ofType(durable, "step-done")).toHaveLength(given.steps.length + 1);
      }),
      { numRuns: 400 },
    );
  });

  it("whose journal fails begins nothing that is not on record, and leaves nothing running but what it gave up", async () => {
    const failing = scenario.filter(({ failingAppend }) => failingAppend !== undefined);
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), failing, async (scheduler, given) => {
        const { failure, executions, executingAtEnd, abandoned, appendsAfterFailure, durable } = await play(
          scheduler,
          given,
        );
        if (failure === undefined) return;
        expect(appendsAfterFailure).toBe(0);
        for (const callId of executingAtEnd) expect(abandoned).toContain(callId);
        const begun = ofType(durable, "tool-started").map(({ callId }) => callId);
        for (const callId of executions) expect(begun).toContain(callId);
      }),
      { numRuns: 300 },
    );
  });
});
