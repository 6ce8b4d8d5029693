import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { WorkspacePermit } from "../workspace/index.js";
import { bindTools } from "./bind.js";
import type { BoundTool } from "./bind.js";
import type { WorkspaceBinding } from "./bindings.js";
import { defineTool, defineTools } from "./definition.js";
import { issuesInWords } from "./issues.js";
import { jsonSchema } from "./json-schema.js";
import { anyObject, call, refusalOf, root, scene, simply, wrong } from "./testing/scenes.js";
import type { Scene } from "./testing/scenes.js";
import type { CallContext } from "./tool.js";

type Work = (workspace: WorkspaceBinding, context: CallContext) => unknown;

/** A tool of a family, which has its binding from `build` and not from the call. */
async function mutator(work: Work, available: Scene = scene()): Promise<BoundTool> {
  const definition = defineTools({
    name: "files",
    produces: ["Write"],
    requires: ["workspace"],
    build: ({ workspace }) => ({ Write: simply(async (_input, context) => String(await work(workspace, context))) }),
  });
  return only(await bindTools(definition, available));
}

async function answering(output: unknown): Promise<BoundTool> {
  const execute = (): never => wrong(output);
  return only(
    await bindTools(defineTool({ name: "Probe", description: "Answers", inputSchema: anyObject, execute }), scene()),
  );
}

function only(tools: ReadonlyMap<string, BoundTool>): BoundTool {
  const [first, ...more] = tools.values();
  if (first === undefined || more.length > 0) throw new Error(`${tools.size} tools were built`);
  return first;
}

const whole = { operation: "whole-mutation" } as const;

describe("T1 a call", () => {
  test("owns the permits its tool acquires: it is refused what it holds already (C4)", async () => {
    const { execute } = await mutator(async ({ coordinator }) => {
      using _held = await coordinator.acquire({ operation: "path-mutation", paths: ["a"] });
      await Promise.resolve();
      return (await refusalOf("coordinator.reentry", () => coordinator.acquire(whole))).code;
    });
    expect(await execute({}, call())).toMatchObject({ text: "coordinator.reentry" });
  });

  test("leaves no permit behind, whether its tool returns or throws", async () => {
    for (const end of [
      () => "done",
      () => {
        throw new Error("failed");
      },
    ]) {
      const available = scene();
      const kept: WorkspacePermit[] = [];
      const { execute } = await mutator(async ({ coordinator }) => {
        kept.push(await coordinator.acquire(whole));
        return end();
      }, available);
      await execute({}, call()).catch(() => undefined);
      expect(kept).toHaveLength(1);
      await refusalOf("coordinator.revoked", () => kept[0]?.assertHeld());
      expect(kept[0]?.revoked.aborted).toBe(true);
      expect(available.coordinator.idle()).toBe(true);
    }
  });

  test("that was given up gets no permit any more, however late it asks (C6)", async () => {
    const available = scene();
    let resume: () => void = () => undefined;
    const hanging = new Promise<void>((resolve) => (resume = resolve));
    const context = call();
    const { execute } = await mutator(async ({ coordinator }) => {
      const permit = await coordinator.acquire(whole);
      await hanging;
      const lost = await refusalOf("coordinator.revoked", () => permit.assertHeld());
      const late = await refusalOf("coordinator.revoked", () => coordinator.acquire(whole));
      return `${lost.code} ${late.code}`;
    }, available);
    const running = execute({}, context);
    available.coordinator.revoke(context.callId);
    expect(available.coordinator.idle()).toBe(true);
    resume();
    expect(await running).toMatchObject({ text: "coordinator.revoked coordinator.revoked" });
  });

  test("that has ended gets none through what it left running", async () => {
    const available = scene();
    let resume: () => void = () => undefined;
    const hanging = new Promise<void>((resolve) => (resume = resolve));
    let left: Promise<unknown> = Promise.resolve();
    const { execute } = await mutator(({ coordinator }) => {
      left = hanging.then(() => coordinator.acquire(whole));
      return "done";
    }, available);
    await execute({}, call());
    resume();
    await refusalOf("coordinator.revoked", () => left);
    expect(available.coordinator.idle()).toBe(true);
  });

  test("waits for another call, and never for itself in another's name", async () => {
    const order: string[] = [];
    let proceed: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (proceed = resolve));
    let turn = 0;
    const { execute } = await mutator(async ({ coordinator }) => {
      const mine = (turn += 1);
      using _permit = await coordinator.acquire(whole);
      order.push(`${mine} in`);
      await gate;
      order.push(`${mine} out`);
      return mine;
    });
    const both = [execute({}, call()), execute({}, call())];
    proceed();
    expect((await Promise.all(both)).map(({ text }) => text)).toEqual(["1", "2"]);
    expect(order).toEqual(["1 in", "1 out", "2 in", "2 out"]);
  });

  test("does not lend its name to a call of another build that runs inside it", async () => {
    const available = scene();
    const inner = await mutator(async ({ coordinator }) => {
      using permit = await coordinator.acquire({ operation: "path-mutation", paths: ["b"] });
      permit.assertHeld();
      return "inner";
    }, available);
    const outer = await mutator(async ({ coordinator }) => {
      using permit = await coordinator.acquire({ operation: "path-mutation", paths: ["a"] });
      const { text } = await inner.execute({}, call());
      permit.assertHeld();
      return `${text} in outer`;
    }, available);
    expect(await outer.execute({}, call())).toMatchObject({ text: "inner in outer" });
    expect(available.coordinator.idle()).toBe(true);
  });

  test("works with a coordinator that knows no calls, also inside a call of another build", async () => {
    const inner = scene();
    const plain = {
      acquire: inner.coordinator.acquire.bind(inner.coordinator),
      assertHealthy: inner.coordinator.assertHealthy.bind(inner.coordinator),
    };
    const { execute } = await mutator(
      async ({ coordinator }) => {
        using permit = await coordinator.acquire(whole);
        permit.assertHeld();
        return inner.coordinator.counts().held;
      },
      { ...inner, workspace: { root, coordinator: plain } },
    );
    expect(await execute({}, call())).toMatchObject({ text: "1" });
    const outer = await mutator(async () => (await execute({}, call())).text);
    expect(await outer.execute({}, call())).toMatchObject({ text: "1" });
    expect(inner.coordinator.idle()).toBe(true);
  });

  test("shows its progress while it runs, and nothing after it", async () => {
    const shown: unknown[] = [];
    let late: () => void = () => undefined;
    const { execute } = await mutator((_workspace, { progress }) => {
      progress("half");
      progress(wrong(7));
      late = () => progress("too late");
      return "done";
    });
    await execute({}, { ...call(), progress: (text) => shown.push(text) });
    late();
    expect(shown).toEqual(["half"]);
    await execute({}, call());
  });

  test("does not start when it was interrupted before", async () => {
    const reason = new Error("interrupted");
    let calls = 0;
    const { execute } = await mutator(() => (calls += 1));
    await expect(execute({}, call(AbortSignal.abort(reason)))).rejects.toBe(reason);
    expect(calls).toBe(0);
  });

  test("rejects with what its tool threw, at once or later", async () => {
    const failure = new Error("no such file");
    for (const execute of [
      () => {
        throw failure;
      },
      () => Promise.reject(failure),
    ]) {
      const definition = defineTool({
        name: "Probe",
        description: "Fails",
        inputSchema: anyObject,
        execute,
      });
      const bound = only(await bindTools(definition, scene()));
      await expect(bound.execute({}, call())).rejects.toBe(failure);
    }
  });
});

describe("an answer", () => {
  test("is text, or text with data and a word on success", async () => {
    const results = await Promise.all(
      ["done", { text: "done" }, { text: "no", isError: true }, { text: "one", data: { n: [1] }, isError: false }].map(
        async (output) => (await answering(output)).execute({}, call()),
      ),
    );
    expect(results).toEqual([
      { text: "done", isError: false },
      { text: "done", isError: false },
      { text: "no", isError: true },
      { text: "one", data: { n: [1] }, isError: false },
    ]);
  });

  test("keeps its data from later changes, in the form JSON has", async () => {
    const data = { at: new Date(0), list: [1], none: undefined };
    const result = await (await answering({ text: "", data })).execute({}, call());
    data.list.push(2);
    expect(result.data).toEqual({ at: "1970-01-01T00:00:00.000Z", list: [1] });
  });

  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  test.each([
    ["nothing", undefined],
    ["null", null],
    ["a number", 7],
    ["an array", ["text"]],
    ["a function", () => "text"],
    ["`text` is nothing", {}],
    ["`text` is a number", { text: 7 }],
    ["`isError` is a string", { text: "", isError: "no" }],
    ["`data` that is not JSON", { text: "", data: cyclic }],
    ["`data` that is not JSON", { text: "", data: 3n }],
    ["`data` that is not JSON", { text: "", data: () => 1 }],
  ])("of plain JavaScript that is none becomes an error the model can act on: %s", async (what, output) => {
    const result = await (await answering(output)).execute({}, call());
    expect(result).toEqual({ isError: true, text: expect.stringContaining(what) as unknown });
    expect(result.text).toContain("do not repeat it");
  });

  test("is always one of the two", async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything({ withBigInt: true, withNullPrototype: true }), async (output) => {
        const result = await (await answering(output)).execute({}, call());
        expect([typeof result.text, typeof result.isError]).toEqual(["string", "boolean"]);
        expect(() => JSON.stringify(result)).not.toThrow();
      }),
      { numRuns: 100 },
    );
  });
});

describe("T4 what is wrong with an input", () => {
  test("names the place as one would write it", () => {
    const issues = [
      { message: "is required", path: ["edits", 2, { key: "old_string" }] },
      { message: "is odd", path: ["a b", "c"] },
      { message: "is wrong", path: [] },
      { message: "is wrong" },
      { message: "is no key", path: [Symbol("s")] },
    ];
    expect(issuesInWords(issues)).toEqual([
      "edits[2].old_string: is required",
      '["a b"].c: is odd',
      "the input: is wrong",
      '["Symbol(s)"]: is no key',
    ]);
  });

  test("is short, whatever was sent and whatever the schema answers", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.array(fc.record({ message: fc.string({ maxLength: 5_000 }), path: fc.anything() }), { maxLength: 300 }),
        ),
        (issues) => {
          const lines = issuesInWords(issues);
          expect(lines.length).toBeGreaterThan(0);
          expect(lines.join("\n").length).toBeLessThan(5_000);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("is told up to ten lines, and how many more there are", async () => {
    const properties = Object.fromEntries(Array.from({ length: 14 }, (_, i) => [`p${i}`, { type: "string" }]));
    const inputSchema = jsonSchema({ type: "object", properties });
    const definition = defineTool({ name: "Probe", description: "Probes", inputSchema, execute: () => "" });
    const { validate } = only(await bindTools(definition, scene()));
    const { issues } = await validate(Object.fromEntries(Object.keys(properties).map((name) => [name, 1])));
    expect(issues).toHaveLength(11);
    expect(issues?.at(-1)).toBe("and 4 more");
  });

  test("is said of input that nests deeper than anything can follow", async () => {
    const inputSchema = jsonSchema({ type: "object", properties: { a: { $ref: "#" } }, additionalProperties: false });
    const definition = defineTool({ name: "Probe", description: "Probes", inputSchema, execute: () => "" });
    const { validate } = only(await bindTools(definition, scene()));
    let deep: unknown = { b: 1 };
    for (let i = 0; i < 200_000; i++) deep = { a: deep };
    const { issues } = await validate(deep);
    expect(issues).toHaveLength(1);
    expect(issues?.[0]?.length).toBeLessThan(500);
  });
});
