/** A model whose calls are malformed: it is told what is wrong, nothing runs, and the session goes on as if nothing had been. */
import { afterAll, describe, expect, it } from "vitest";
import { calls, finish } from "../../src/loop/testing/models.js";
import { jsonSchema, defineTool } from "../../src/tool/index.js";
import { HostileScene } from "./hostile-scene.js";
import type { Attack } from "./hostile-scene.js";

const any = defineTool({
  name: "Any",
  description: "Takes anything",
  inputSchema: jsonSchema<object>({ type: "object" }),
  execute: (input) =>
    `${Object.keys(input).length} members, prototype ${Object.getPrototypeOf(input) === Object.prototype ? "plain" : "odd"}`,
});
const gated = defineTool({
  name: "Gated",
  description: "Asks first",
  inputSchema: jsonSchema<object>({ type: "object" }),
  needsApproval: true,
  execute: () => "ran",
});

const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

describe("input that is wrong", () => {
  const scene = new HostileScene({ tools: [any, gated] });
  afterAll(() => scene[Symbol.asyncDispose]());

  const refuses = async (tool: string, input: string, wanted: RegExp): Promise<Attack> => {
    const before = scene.place.tree();
    const attack = await scene.attackCalls(calls(tool, input));
    const { told, result } = attack;
    expect(result).toMatchObject({ status: "done" });
    expect(told).toMatchObject([{ tool, type: "error-text" }]);
    expect(told[0]?.text).toMatch(wanted);
    expect(told[0]?.text.length).toBeLessThan(2_000);
    expect(scene.place.tree()).toEqual(before);
    return attack;
  };
  const began = ({ events }: Attack): boolean => events.some(({ type }) => type === "tool-started");

  it.each<[string, string, string, RegExp]>([
    ["cut JSON", "Read", '{"file_path":"a.t', /not valid JSON .* It began with/s],
    ["no JSON at all", "Read", "read a.txt please", /not valid JSON/],
    ["JSON with a remark after it", "Read", '{"file_path":"a.txt"} ok?', /not valid JSON/],
    ["a raw NUL", "Read", '{"file_path":"a\0b"}', /not valid JSON/],
    ["a text", "Read", '"a.txt"', /object, and is string/],
    ["a list", "Read", '["a.txt"]', /object, and is array/],
    ["null", "Read", "null", /object, and is null/],
    ["nothing", "Read", "", /file_path: is required/],
    ["a member of a wrong type", "Read", '{"file_path":7}', /file_path: must be string, and is number/],
    ["a member too many", "Read", '{"file_path":"a.txt","encoding":"latin1"}', /encoding: is unknown here; known: /],
    ["members missing", "Edit", '{"file_path":"a.txt"}', /old_string: is required\nnew_string: is required/],
    ["a number out of range", "Read", '{"file_path":"a.txt","offset":-1}', /offset: must be >= 1/],
    ["half a number", "Read", '{"file_path":"a.txt","offset":1.5}', /offset: must be integer/],
    ["a time-out of 0", "Bash", '{"command":"touch x","timeout_ms":0}', /timeout_ms: must be >= 1/],
    ["a time-out of a month", "Bash", '{"command":"touch x","timeout_ms":2592000000}', /timeout_ms: must be <= /],
    ["a number beyond all", "Any", '{"n":1e999}', /number in the input is larger/],
    ["a number beyond all, for a gate", "Gated", '{"n":[-1e999]}', /number in the input is larger/],
    ["nesting without end", "Any", "[".repeat(100_000), /not valid JSON|nested too deeply/],
    ["nesting beyond encoders", "Any", deep(5_000), /nested too deeply/],
    ["the member __proto__", "Read", '{"file_path":"a.txt","__proto__":{"offset":1}}', /__proto__: is unknown here/],
    ["what is required in __proto__", "Read", '{"__proto__":{"file_path":"a.txt"}}', /file_path: is required/],
    ["the member constructor", "Bash", '{"command":"true","constructor":1}', /constructor: is unknown here/],
  ])("(%s) is told, and no tool begins", async (_, tool, input, wanted) => {
    expect(began(await refuses(tool, input, wanted))).toBe(false);
  });

  it.each<[string, string, string, RegExp]>([
    ["a NUL in a path", "Read", '{"file_path":"a\\u0000b"}', /NUL/],
    ["a NUL in a command", "Bash", '{"command":"true\\u0000; touch x"}', /Nothing ran: .* NUL/],
    ["half a surrogate pair in content", "Write", '{"file_path":"s","content":"\\ud800"}', /surrogate|half/i],
    ["half a surrogate pair in a path", "Read", '{"file_path":"\\ud800"}', /.+/],
    ["half a surrogate pair in a pattern", "Grep", '{"pattern":"\\ud800("}', /.+/],
    ["a NUL in a pattern", "Grep", '{"pattern":"\\u0000"}', /.+/],
    ["a NUL in a glob", "Glob", '{"pattern":"\\u0000"}', /.+/],
    ["a regular expression that is none", "Grep", '{"pattern":"("}', /regex parse error/],
  ])("(%s) that only the tool can judge is told by it", async (_, tool, input, wanted) => {
    expect(began(await refuses(tool, input, wanted))).toBe(true);
  });

  it("(the member __proto__) is a member like any other for a tool that takes all, and no prototype", async () => {
    const { told } = await scene.attackCalls(
      calls("Any", '{"__proto__":{"polluted":1},"constructor":{"prototype":{}}}'),
    );
    expect(told).toMatchObject([{ type: "text", text: "2 members, prototype plain" }]);
    expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined();
  });

  it("(hostile text) comes to a gate and back as it was written", async () => {
    const { events, told } = await scene.attackCalls(
      calls("Gated", '{"a":"\\ud800\\u0000","__proto__":[1],"b":"\\u001b[31m"}'),
    );
    expect(events.find(({ type }) => type === "gate-opened")).toMatchObject({ tool: "Gated" });
    expect(told).toMatchObject([{ type: "text", text: "ran" }]);
  });

  it("all that stays in a conversation which another session goes on with", () => scene.proveResumable());
});

describe("input of 10 MB", () => {
  it.each<[string, string]>([
    ["that is JSON", JSON.stringify({ file_path: "big", content: "x".repeat(10_000_000) })],
    ["that is none", "x".repeat(10_000_000)],
  ])("%s is told to be too much, and neither the journal nor a later prompt holds it", async (_, input) => {
    await using scene = new HostileScene();
    const { told, events } = await scene.attackCalls(calls("Write", input));
    expect(told).toMatchObject([{ type: "error-text", text: expect.stringContaining("more than 1048576") as string }]);
    for (const event of events) expect(JSON.stringify(event).length).toBeLessThan(1_200_000);
    await scene.proveResumable();
    expect(JSON.stringify(scene.prompts.at(-1)).length).toBeLessThan(10_000);
    expect(Object.keys(scene.place.tree())).toEqual(["a.txt"]);
  });
});

describe("names and ids that are wrong", () => {
  const scene = new HostileScene({ tools: [any] });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each([
    "Erase",
    "read",
    "Read ",
    "",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "a\nb",
    "\u001b[2J",
    "\0",
    "\ud800",
    "x".repeat(1_000_000),
  ])("the unknown tool %j is told which there are", async (name) => {
    const { told, events, result } = await scene.attackCalls(calls(name, {}));
    expect(result).toMatchObject({ status: "done" });
    expect(told).toMatchObject([{ type: "error-text" }]);
    expect(told[0]?.text).toMatch(/^There is no tool "[^\p{Cc}]*"\. There are: Read, Write, .*, Bash, Any\.$/u);
    // Providers take no other names in a conversation.
    expect(told[0]?.tool).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(events.some(({ type }) => type === "tool-started")).toBe(false);
  });

  it.each([
    ["empty", ""],
    ["with line ends", "a\nb\r\n"],
    ["with escape codes", "\u001b]0;x\u0007"],
    ["of a megabyte", "i".repeat(1_000_000)],
    ["like a prototype", "__proto__"],
    ["with half a surrogate pair", "\ud800"],
  ])("a call id that is %s is answered under an id that providers take", async (_, id) => {
    const { told } = await scene.call("Read", { file_path: "a.txt" }, id);
    expect(told).toMatchObject([{ tool: "Read", type: "text", text: expect.stringContaining("one") as string }]);
    expect(idsIn(scene)).toMatchObject({ odd: [], repeated: [] });
  });

  it("ids repeated in a step, across steps, turns and a restart all have answers of their own", async () => {
    const step = (n: number) => [
      calls("Any", { n, a: 1 }, "call_0"),
      calls("Any", { n, b: 1, c: 1 }, "call_0"),
      finish("tool-calls"),
    ];
    for (const turn of [1, 2]) {
      const { told } = await scene.attack([step(turn), step(turn + 10)]);
      await scene.proveResumable();
      expect(told.map(({ text }) => text.slice(0, 9))).toEqual(["2 members", "3 members", "2 members", "3 members"]);
    }
    expect(idsIn(scene)).toMatchObject({ odd: [], repeated: [] });
  });
});

/** Of the conversation as it was last sent: ids that providers refuse, and those that are not of one call and one result. */
function idsIn({ prompts }: HostileScene): { readonly odd: readonly string[]; readonly repeated: readonly string[] } {
  const of = (role: string, type: string): readonly string[] =>
    (prompts.at(-1) ?? []).flatMap((message) =>
      message.role === role
        ? (message.content as readonly { readonly type: string; readonly toolCallId: string }[]).flatMap((part) =>
            part.type === type ? [part.toolCallId] : [],
          )
        : [],
    );
  const called = of("assistant", "tool-call");
  expect(of("tool", "tool-result")).toEqual(called);
  return {
    odd: called.filter((id) => !/^[A-Za-z0-9_-]{1,64}$/.test(id)),
    repeated: called.filter((id, index) => called.indexOf(id) !== index),
  };
}
