import { describe, expect, test } from "vitest";
import { isLooprigError } from "../core/index.js";
import { installLine } from "./install-line.js";
import { chooseModel, parseBaseUrl } from "./model-choice.js";

const choose = (model?: string, baseUrl?: string, env: Record<string, string> = {}): unknown =>
  chooseModel({ model, baseUrl }, env);

describe("the model", () => {
  test.each<[string | undefined, string | undefined, Record<string, string>, unknown]>([
    ["anthropic/claude-x", undefined, {}, { kind: "provider", provider: "anthropic", name: "claude-x" }],
    ["amazon-bedrock/eu.a/b:0", undefined, {}, { kind: "provider", provider: "amazon-bedrock", name: "eu.a/b:0" }],
    [undefined, undefined, { LOOPRIG_MODEL: "openai/gpt" }, { kind: "provider", provider: "openai", name: "gpt" }],
    ["a/b", undefined, { LOOPRIG_MODEL: "openai/gpt" }, { kind: "provider", provider: "a", name: "b" }],
    ["org/name:7b", "http://h/v1", {}, { kind: "compatible", baseUrl: "http://h/v1", name: "org/name:7b" }],
    [undefined, "http://h/v1", { LOOPRIG_MODEL: "m" }, { kind: "compatible", baseUrl: "http://h/v1", name: "m" }],
    ["script:a b.json", undefined, {}, { kind: "script", file: "a b.json" }],
  ])("%j with the address %j and %j is %j", (model, baseUrl, env, wanted) => {
    expect(choose(model, baseUrl, env)).toEqual(wanted);
  });

  test.each<[string | undefined, string | undefined]>([
    ["claude", undefined],
    ["../../evil/x", undefined],
    ["@scope/x", undefined],
    ["anthropic/", undefined],
    ["script:", undefined],
    ["script:a", "http://h"],
    [undefined, "http://h"],
  ])("%j with the address %j is refused as wrong usage", (model, baseUrl) => {
    expect(() => choose(model, baseUrl)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
  });

  test("none at all is an error of its own, also where the variable is blank", () => {
    for (const env of [{}, { LOOPRIG_MODEL: " " }]) {
      try {
        choose(undefined, undefined, env);
        expect.unreachable();
      } catch (error) {
        expect(isLooprigError(error, "model.not_chosen")).toBe(true);
      }
    }
  });

  test("an address is one of HTTP", () => {
    expect(["http://localhost:1/v1", "https://h"].map(parseBaseUrl)).toEqual(["http://localhost:1/v1", "https://h"]);
    expect(["localhost:1", "file:///x", "", "h"].map(parseBaseUrl)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

test.each([
  ["/opt/n/lib/node_modules/looprig", "npm install --global --prefix /opt/n @ai-sdk/x"],
  ["/home/ada/my project/node_modules/looprig", "npm install --prefix '/home/ada/my project' @ai-sdk/x"],
  ["/home/ada/looprig", "npm install --no-save --prefix /home/ada/looprig @ai-sdk/x"],
])("beside %s a package is installed by %s", (dir, line) => {
  expect(installLine(dir, "@ai-sdk/x")).toBe(line);
});
