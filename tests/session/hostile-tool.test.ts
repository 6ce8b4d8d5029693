/**
 * Tools at their worst: what one throws, returns or never does is a result the model can act on; what it was given leads it
 * nowhere else; and once it was given up, nothing of it takes effect through us.
 */
import fs from "node:fs";
import { afterAll, describe, expect, it, vi } from "vitest";
import { calls, finish } from "../../src/loop/testing/models.js";
import { defineTool, defineTools, jsonSchema, tool } from "../../src/tool/index.js";
import type { ToolDefinition, ToolOutput, ToolSchema, WorkspaceBinding } from "../../src/tool/index.js";
import { HostileScene } from "./hostile-scene.js";

const anything = jsonSchema<Readonly<Record<string, unknown>>>({ type: "object" });
const fail = (thrown: unknown) => (): never => {
  throw thrown;
};
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const trap = (name: string): object =>
  Object.defineProperty({}, name, { enumerable: true, get: fail(new Error("a trap")) });
const circular: Record<string, unknown> = {};
circular["self"] = circular;

/** One tool per way to end, by number. */
function toolsThat(ends: readonly (() => unknown)[]): ToolDefinition {
  const names = ends.map((_, index) => `T${index}`);
  return defineTools({
    name: "hostile",
    produces: names,
    // What is built is known to the list alone, which the compiler does not see.
    build: (): never =>
      Object.fromEntries(
        ends.map((end, index) => [
          `T${index}`,
          tool({ description: "Ends", inputSchema: anything, execute: () => end() as ToolOutput }),
        ]),
      ) as never,
  });
}

describe("a tool that throws", () => {
  const thrown: readonly (readonly [string, unknown, RegExp])[] = [
    ["an error", new Error("no such file"), /^no such file$/],
    ["an error without words", new TypeError(""), /^TypeError$/],
    ["an error with words of another type", Object.assign(new Error(""), { message: 7 }), /^Error$/],
    ["an error whose words are a trap", Object.defineProperty(new Error(""), "message", { get: fail("x") }), /^Error$/],
    ["a text", "no", /^no$/],
    ["an empty text", "", /no error/],
    ["nothing", undefined, /no error/],
    ["null", null, /no error/],
    ["a number", 7, /no error/],
    ["a bigint", 7n, /no error/],
    ["a symbol", Symbol("no"), /no error/],
    ["an object that is no text", { toString: fail("x"), [Symbol.toPrimitive]: fail("x") }, /no error/],
    ["an object without a prototype", Object.create(null), /no error/],
    ["traps", trap("message"), /no error/],
    ["what cannot be looked at", revoked(), /no error/],
    ["what is like a promise", { then: fail("x") }, /no error/],
  ];
  const scene = new HostileScene({
    tools: [toolsThat(thrown.flatMap(([, value]) => [fail(value), async () => fail(value)()]))],
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(thrown.map((row, index) => [...row, index] as const))(
    "(%s) is an error result",
    async (_, __, wanted, index) => {
      const { told, events } = await scene.attackCalls(
        calls(`T${2 * index}`, {}, "a"),
        calls(`T${2 * index + 1}`, {}, "b"),
      );
      for (const each of told)
        expect(each).toMatchObject({ type: "error-text", text: expect.stringMatching(wanted) as string });
      expect(events.filter(({ type }) => type === "tool-done")).toMatchObject([
        { outcome: "error" },
        { outcome: "error" },
      ]);
    },
  );

  it("stays in a conversation which another session goes on with", () => scene.proveResumable());
});

describe("a tool that answers", () => {
  const lost = /its answer is lost.*do not repeat it|a trap|perform 'get' on a proxy|^x$/s;
  const answers: readonly (readonly [string, () => unknown, RegExp])[] = [
    ["nothing", () => undefined, lost],
    ["a number", () => 7, lost],
    ["a bigint", () => 7n, lost],
    ["a list", () => ["text"], lost],
    ["a function", () => () => "text", lost],
    ["text that is none", () => ({ text: { toString: () => "x" } }), lost],
    ["a word on success that is none", () => ({ text: "x", isError: "no" }), lost],
    ["data in a circle", () => ({ text: "x", data: circular }), lost],
    ["data that is a bigint", () => ({ text: "x", data: { n: 1n } }), lost],
    ["data that will not be told", () => ({ text: "x", data: { toJSON: fail(new Error("a trap")) } }), lost],
    ["data that is deeper than stacks", () => ({ text: "x", data: deepList(100_000) }), lost],
    ["data that is deeper than encoders bear", () => ({ text: "x", data: deepList(1_000) }), /^x$/],
    ["data that is no number", () => ({ text: "x", data: [NaN, Infinity, undefined] }), /^x$/],
    [
      "data with odd names",
      () => ({ text: "x", data: JSON.parse('{"__proto__":{"a":1},"\\ud800":"\\ud800"}') as object }),
      /^x$/,
    ],
    ["a trap", () => trap("text"), lost],
    ["what cannot be looked at", () => revoked(), lost],
    ["a promise of a promise", () => Promise.resolve(Promise.resolve("x")), /^x$/],
    ["a promise that is a trap", () => trap("then"), lost],
    ["an error without a word", () => ({ text: "", isError: true }), /^\[no output\]$/],
    ["half a character", () => "\ud83d", /^\ufffd$/],
  ];
  const scene = new HostileScene({ tools: [toolsThat(answers.map(([, answer]) => answer))] });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(answers.map(([what, , wanted], index) => [what, wanted, index] as const))(
    "(%s) has an answer that can be told",
    async (_, wanted, index) => {
      const { told, result } = await scene.call(`T${index}`, {});
      expect(result).toMatchObject({ status: "done" });
      expect(told[0]?.text).toMatch(wanted);
    },
  );

  it("stays in a conversation which another session goes on with", () => scene.proveResumable());
});

function deepList(levels: number): unknown {
  let list: unknown = 1;
  for (let i = 0; i < levels; i++) list = [list];
  return list;
}

describe("a schema or a rule that is broken", () => {
  const ran: string[] = [];
  const broken = (name: string, validate: (value: unknown) => unknown, extra: object = {}): ToolDefinition =>
    defineTool({
      name,
      description: "Checks badly",
      inputSchema: {
        "~standard": {
          ...{ version: 1, vendor: "test", validate },
          jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
        },
      } as unknown as ToolSchema,
      execute: () => {
        ran.push(name);
        return "ran";
      },
      ...extra,
    });
  const passes = (value: unknown): object => ({ value });
  const rules: readonly (readonly [string, unknown])[] = [
    ["Throws", fail(new Error("x"))],
    ["Nothing", () => undefined],
    ["Zero", () => 0],
    ["Text", () => "false"],
    ["Object", () => ({})],
    ["Later", () => Promise.resolve(0)],
    ["Rejects", () => Promise.reject(new Error("x"))],
    ["Trap", () => trap("then")],
    ["Proxy", () => revoked()],
  ];
  const scene = new HostileScene({
    approve: false,
    tools: [
      broken("Throws", fail(new Error("x"))),
      broken("ThrowsOdd", fail({ toString: fail("x") })),
      broken("Nothing", () => undefined),
      broken("Number", () => 7),
      broken("Empty", () => ({})),
      broken("Later", () => Promise.reject(new Error("x"))),
      broken("Trap", () => trap("issues")),
      broken("Proxy", () => revoked()),
      broken("OddIssues", () => ({ issues: 7 })),
      broken("TrapIssues", () => ({ issues: [trap("message"), { path: [{ toString: fail("x") }], message: 7 }] })),
      broken("Hangs", () => new Promise(() => undefined)),
      ...rules.map(([name, rule]) => broken(`Rule${name}`, passes, { needsApproval: rule })),
      broken("RuleHangs", passes, { needsApproval: () => new Promise(() => undefined) }),
    ],
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(["Throws", "ThrowsOdd", "Nothing", "Number", "Empty", "Later", "Trap", "Proxy", "OddIssues", "TrapIssues"])(
    "(a schema, %s) lets nothing through",
    async (name) => {
      const { told, events } = await scene.call(name, {});
      expect(told).toMatchObject([
        { type: "error-text", text: expect.stringContaining("The call did not run") as string },
      ]);
      expect(events.some(({ type }) => type === "tool-started")).toBe(false);
      expect(ran).toEqual([]);
    },
  );

  it.each(rules.map(([name]) => `Rule${name}`))(
    "T5: (%s) has not said that a call is harmless, so it is asked",
    async (name) => {
      const { told, events } = await scene.call(name, { a: 1 });
      expect(events.find(({ type }) => type === "gate-opened")).toMatchObject({ tool: name, input: { a: 1 } });
      expect(told).toMatchObject([{ type: "error-text", text: expect.stringContaining("not approved") as string }]);
      expect(ran).toEqual([]);
    },
  );

  it.each(["Hangs", "RuleHangs"])("(%s) that never answers is interrupted at once, and nothing ran", async (name) => {
    const session = await scene.session();
    const { result, events } = await scene.attack([[calls(name, {}), finish("tool-calls")]], ({ type }) => {
      if (type === "step-started") setImmediate(() => void session.interrupt({ reason: "enough" }));
    });
    expect(result).toMatchObject({ status: "interrupted", reason: "enough" });
    expect(events.find(({ type }) => type === "tool-done")).toMatchObject({ outcome: "refused" });
    expect(ran).toEqual([]);
  });

  it("stays in a conversation which another session goes on with", () => scene.proveResumable());
});

describe("C6: a tool that hangs and heeds no signal", () => {
  it("is given up 5 s after the interrupt; the loop is idle, its outcome unknown, and its late writes fail", async () => {
    const late: string[] = [];
    let goOn: () => void = () => undefined;
    let settled: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const ended = new Promise<void>((resolve) => (settled = resolve));
    const attempt = async (what: string, act: () => unknown): Promise<void> => {
      try {
        await act();
        late.push(`${what} worked`);
      } catch (error) {
        late.push(`${what} ${(error as { readonly code?: string }).code ?? String(error)}`);
      }
    };
    const hangs = defineTool({
      name: "Hangs",
      description: "Hangs",
      requires: ["workspace"],
      inputSchema: anything,
      execute: async (_, { workspace, progress }) => {
        const permit = await workspace.coordinator.acquire({ operation: "whole-mutation" });
        progress("begun");
        await waiting;
        await attempt("the permit", () => permit.assertHeld());
        await attempt("another permit", () =>
          workspace.coordinator.acquire({ operation: "path-mutation", paths: ["x"] }),
        );
        await attempt("the whole tree", () => workspace.coordinator.acquire({ operation: "whole-mutation" }));
        await attempt("giving back", () => permit.release());
        progress("too late");
        settled();
        return "late";
      },
    });
    await using scene = new HostileScene({ tools: [hangs] });
    const session = await scene.session();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      let interrupted: Promise<void> | undefined;
      const { result, events } = await scene.turn([[calls("Hangs", {}), finish("tool-calls")]], ({ type }) => {
        if (type !== "tool-started") return;
        setImmediate(() => {
          interrupted = session.interrupt({ reason: "enough" });
          setImmediate(() => vi.advanceTimersByTime(5_000));
        });
      });
      expect(result).toMatchObject({ status: "interrupted", reason: "enough" });
      expect(events.find(({ type }) => type === "tool-done")).toMatchObject({
        outcome: "unknown",
        text: expect.stringContaining("had not ended after 5 s") as string,
      });
      await interrupted;
      await session.idle();
    } finally {
      vi.useRealTimers();
    }
    // Its permit of the whole tree is gone: the next turn writes.
    const write = await scene.turn([[calls("Write", { file_path: "next", content: "n\n" }), finish("tool-calls")]]);
    expect(write.told).toMatchObject([{ type: "text" }]);
    goOn();
    await ended;
    expect(late).toEqual([
      ...["the permit coordinator.revoked", "another permit coordinator.revoked", "the whole tree coordinator.revoked"],
      "giving back worked",
    ]);
    await scene.proveUsable();
    await scene.proveResumable();
    const outcomes = JSON.stringify(scene.prompts.at(-1));
    expect(outcomes).toContain("may have done all, part or nothing");
    expect(outcomes).not.toContain('"late"');
  });
});

describe("T1: what a tool is given", () => {
  it("leads nowhere else: it is frozen, fresh, and has nothing extra even through prototypes", async () => {
    const found: string[] = [];
    const kept: WorkspaceBinding[] = [];
    const greedy = (name: string): ToolDefinition =>
      defineTool({
        name,
        description: "Takes what it can",
        requires: ["workspace"],
        inputSchema: anything,
        execute: async (input, context) => {
          const { workspace } = context;
          kept.push(workspace);
          const permit = await workspace.coordinator.acquire({ operation: "whole-mutation" });
          for (const [what, value] of Object.entries({
            context,
            workspace,
            coordinator: workspace.coordinator,
            permit,
          })) {
            if (!Object.isFrozen(value)) found.push(`${what} is not frozen`);
            if (Object.getPrototypeOf(value) !== null) found.push(`${what} has a prototype`);
            const loose = value as unknown as Record<string, unknown>;
            for (const act of [
              () => Object.assign(loose, { root: "/" }),
              () => Object.assign(loose, { added: 1 }),
              () => void Object.setPrototypeOf(value, { polluted: 1 }),
              () => Object.defineProperty(value, "acquire", { value: () => undefined }),
              () =>
                Reflect.ownKeys(value).every((key) => Reflect.deleteProperty(value, key)) ||
                fail(new TypeError("kept"))(),
            ]) {
              expect(act).toThrow(TypeError);
            }
            if ("constructor" in value || "__proto__" in value) found.push(`${what} leads on`);
          }
          (input as Record<string, unknown>)["changed"] = true;
          permit.release();
          return Object.keys(context).sort().join();
        },
      });
    await using scene = new HostileScene({ tools: [greedy("First"), greedy("Second")] });
    const { told, events } = await scene.attackCalls(calls("First", { a: 1 }, "1"), calls("Second", { a: 1 }, "2"));
    const members = "callId,loopId,progress,sessionId,signal,workspace";
    expect(told).toMatchObject([{ text: members }, { text: members }]);
    expect(found).toEqual([]);
    expect(kept[0]).not.toBe(kept[1]);
    expect(kept[0]?.coordinator).not.toBe(kept[1]?.coordinator);
    expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined();
    // What a tool does to its input reaches no record.
    expect(JSON.stringify(events)).not.toContain('changed\\\\":true');
    await scene.proveResumable();
    await scene.close();
    await expect(kept[0]?.coordinator.acquire({ operation: "whole-mutation" })).rejects.toMatchObject({
      code: "tool_binding.ended",
    });
  });

  it("works as long as its session, whatever a tool does to the objects everybody shares", async () => {
    const shows = defineTool({
      name: "Pollutes",
      description: "Pollutes",
      inputSchema: anything,
      execute: (_, context) => {
        const loose = context as unknown as { readonly progress: { constructor: { prototype: object } } };
        // A function leads to the language's own prototypes, as every function does; a member added there is on no binding.
        Object.defineProperty(loose.progress.constructor.prototype, "leaked", { value: 1, configurable: true });
        return String("leaked" in (context as object));
      },
    });
    await using scene = new HostileScene({ tools: [shows] });
    try {
      expect((await scene.call("Pollutes", {})).told).toMatchObject([{ text: "false" }]);
    } finally {
      Reflect.deleteProperty(Function.prototype, "leaked");
    }
  });
});

it("T2: a read tool is given a path and nothing to write with", async () => {
  const { defineReadTools } = await import("../../src/tool/index.js");
  const look = defineReadTools({
    name: "look",
    produces: ["Look"],
    build: ({ readWorkspace, ...rest }) => ({
      Look: tool({
        description: "Looks",
        inputSchema: anything,
        execute: () =>
          JSON.stringify([Object.keys(readWorkspace), Object.keys(rest).sort(), fs.existsSync(readWorkspace.root)]),
      }),
    }),
  });
  await using scene = new HostileScene({ tools: [look] });
  expect((await scene.call("Look", {})).told).toMatchObject([{ text: '[["root"],["loopId","sessionId"],true]' }]);
});
