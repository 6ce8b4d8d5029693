/** What is said of an agent's calls and turns, and that nothing a model wrote reaches the terminal as more than text. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CallId, Json, TurnId } from "../core/index.js";
import type { EventOf, ToolOutcome } from "../session-store/index.js";
import { displayWidth } from "./columns.js";
import { callHead, callResult, driftLine, resultColumn, turnLine, wholeCommand } from "./render-run.js";
import { at, first } from "./testing/samples.js";

const envelope = { seq: 9, id: "e" as EventOf<"tool-done">["id"], at: at(13, 2), sessionId: first };

const done = (name: string, text: string, more: { outcome?: ToolOutcome; data?: Json } = {}): EventOf<"tool-done"> => ({
  ...{ ...envelope, type: "tool-done", callId: "c" as CallId, name, text, outcome: "ok" },
  ...more,
});

const result = (name: string, input: Json, text: string, more: Parameters<typeof done>[2] = {}, ms?: number): string =>
  callResult({ name, input }, done(name, text, more), ms);

describe("a call", () => {
  test("names its tool and what it is about, results in one column", () => {
    expect(callHead({ name: "Read", input: { file_path: "src/parse.js", offset: 3 } })).toBe(
      "› Read   src/parse.js        ",
    );
    expect(callHead({ name: "Bash", input: { command: "npm test" } })).toHaveLength(resultColumn);
    expect(callHead({ name: "List", input: {} }).trimEnd()).toBe("› List");
    expect(callHead({ name: "Deploy", input: { to: "moon" } })).toBe('› Deploy {"to":"moon"}       ');
  });

  test.each<[string, Json, string, Parameters<typeof done>[2], number | undefined, string]>([
    ["Read", {}, "     1\ta\n     2\tb\n[lines 1 to 2 of 9; go on with offset 3]", {}, 3, "2 lines"],
    ["Read", {}, "[the file is empty]", {}, 3, "0 lines"],
    [
      "Bash",
      {},
      "no\n[exit code 1]",
      { outcome: "error", data: { exitCode: 1, ended: "itself" } },
      2_140,
      "exit 1   2.1 s",
    ],
    ["Bash", {}, "", { outcome: "error", data: { exitCode: 143, ended: "timeout" } }, 9_000, "timed out   9.0 s"],
    ["Edit", { old_string: "a\nb\nc\n", new_string: "a\nB\nBB\nc\n" }, "Edited x. Around", {}, 1, "+2 -1"],
    ["Edit", { old_string: "a", new_string: "b" }, "Edited x, 3 times. Around", {}, 1, "+3 -3"],
    ["Edit", { old_string: "gone\n", new_string: "" }, "Edited x. Around", {}, 1, "+0 -1"],
    ["Write", { content: "a\nb\n" }, "Created x, 4 bytes.", {}, 1, "created, 2 lines"],
    ["Write", { content: "a" }, "Wrote x, 1 bytes.", {}, 1, "1 line"],
    ["Glob", {}, "a.ts\nb.ts\n[more paths are left out]", {}, 1, "2 paths"],
    ["Grep", {}, '[no line here fits "x"]', {}, 1, "0 lines"],
    [
      "Read",
      {},
      "Cannot find x: there is no such file",
      { outcome: "error" },
      1,
      "failed: Cannot find x: there is no such file",
    ],
    [
      "Bash",
      {},
      "This call did not run: it was not approved: not now",
      { outcome: "refused" },
      undefined,
      "not approved: not now",
    ],
    ["Bash", {}, "…", { outcome: "unknown" }, 1, "interrupted; it may have done a part of its work"],
  ])("%s %j tells what came of it: %j", (name, input, text, more, ms, wanted) => {
    expect(result(name, input, text, more, ms)).toBe(wanted);
  });

  test("is one line that a terminal does not act on, and not endless, whatever a model wrote", () => {
    const nasty = fc.array(
      fc.constantFrom("\u001b[2J", "\r", "\n", "\u202e", "\u0007", "a", "漢", "\ud800", "x".repeat(90)),
    );
    const texts = nasty.map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, texts, texts, (name, target, text) => {
        const call = { name, input: { command: target } };
        for (const line of [
          callHead(call),
          callResult(call, done(name, text), 1),
          callResult(call, done(name, text, { outcome: "error" }), 1),
        ]) {
          expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
          expect(displayWidth(line)).toBeLessThan(130);
        }
      }),
    );
  });
});

describe("what is to be approved", () => {
  test("is shown whole where its line would cut it or hide its breaks", () => {
    expect(wholeCommand({ name: "Bash", input: { command: "npm test" } })).toBeUndefined();
    expect(wholeCommand({ name: "Bash", input: { command: "npm test\nrm -r /" } })).toBe("npm test\nrm -r /");
    const long = `npm test ${" ".repeat(80)}; rm -r /`;
    expect(wholeCommand({ name: "Bash", input: { command: long } })).toBe(long);
    expect(wholeCommand({ name: "Mine", input: { file_path: "a", and: "b" } })).toBe('{"file_path":"a","and":"b"}');
  });
});

describe("a turn", () => {
  const end: EventOf<"turn-done"> = {
    ...{ ...envelope, type: "turn-done", turnId: "t" as TurnId, order: 1, changed: 2, text: "", steps: 4 },
    usage: { inputTokens: 8_412, outputTokens: 94 },
  };
  const ended = { number: 1, end, calls: 5, checkpoint: 2, protected: true };

  test("ends with its calls, tokens and checkpoint", () => {
    expect(turnLine(ended)).toBe("t1 done   5 calls, 8.4k in, 94 out   c2");
    const plain = { ...end, usage: {} };
    expect(turnLine({ ...ended, end: plain, calls: 0, checkpoint: undefined })).toBe("t1 done   changed nothing");
  });

  test("says when it came to a limit, was cut short, or is not protected", () => {
    expect(turnLine({ ...ended, end: { ...end, limit: "steps" } })).toMatch(
      /^t1 stopped at its limit of steps {3}5 calls/,
    );
    const cut: EventOf<"turn-interrupted"> = {
      ...{ ...envelope, type: "turn-interrupted", order: 1, changed: 0, reason: "Ctrl-C" },
    };
    expect(turnLine({ ...ended, end: cut })).toBe("t1 interrupted   5 calls   c2");
    expect(turnLine({ ...ended, protected: false })).toMatch(/ {3}! not protected: /);
  });
});

test("a configuration that was adopted is told in one line, models by their names", () => {
  const model = (modelId: string): Json => ({ specification: "v3", provider: "local", modelId });
  const event: EventOf<"configuration-adopted"> = {
    ...{ ...envelope, type: "configuration-adopted" },
    changes: [
      { field: "loops.operator.model", stored: model("a"), live: model("b\u001b[2J") },
      { field: "loops.operator.system", stored: "sha256:1", live: "sha256:2" },
      { field: "capture.exclude", stored: null, live: ["x"] },
    ],
  };
  expect(driftLine(event)).toBe(
    "changed since then: model local/a, now local/b\ufffd[2J; the instructions; capture.exclude",
  );
});
