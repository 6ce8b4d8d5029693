import { describe, expect, test } from "vitest";
import { z } from "zod";
import { bindTools } from "./bind.js";
import { defineTool, defineTools } from "./definition.js";
import type { NeedsApproval } from "./approval.js";
import { scene, wrong } from "./testing/scenes.js";
import { tool } from "./tool.js";

const inputSchema = z.object({ path: z.string(), force: z.boolean().default(true) });
type Input = z.output<typeof inputSchema>;

/** What one tool says of an input, by both ways to define it. */
async function asked(needsApproval: NeedsApproval<Input> | undefined, input: unknown): Promise<readonly boolean[]> {
  const options = { description: "Probes", inputSchema, needsApproval, execute: () => "" };
  const definitions = [
    defineTool({ name: "Probe", ...options }),
    defineTools({ name: "probes", produces: ["Probe"], build: () => ({ Probe: tool(options) }) }),
    defineTools({ name: "probes", produces: ["Probe"], build: () => ({ Probe: options }) }),
  ];
  return Promise.all(
    definitions.map(async (definition) => {
      const bound = (await bindTools(definition, scene())).get("Probe");
      const { value } = (await bound?.validate(input)) ?? {};
      return (await bound?.needsApproval(value)) ?? false;
    }),
  );
}

const all = (answer: boolean): readonly boolean[] => [answer, answer, answer];

describe("T5 approval", () => {
  test("is not needed unless the tool says so", async () => {
    expect(await asked(undefined, { path: "a" })).toEqual(all(false));
    expect(await asked(false, { path: "a" })).toEqual(all(false));
    expect(await asked(true, { path: "a" })).toEqual(all(true));
  });

  test("is decided by the input as the tool will get it", async () => {
    const rule = ({ path, force }: Input): boolean => force && path.startsWith("/");
    expect(await asked(rule, { path: "/etc" })).toEqual(all(true));
    expect(await asked(rule, { path: "a" })).toEqual(all(false));
    expect(await asked(rule, { path: "/etc", force: false })).toEqual(all(false));
    expect(await asked(async ({ path }) => path !== "a", { path: "a" })).toEqual(all(false));
  });

  test.each<readonly [string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("cannot judge");
      },
    ],
    ["rejects", () => Promise.reject(new Error("cannot judge"))],
    ["answers nothing", () => undefined],
    ["answers 0", () => 0],
    ["answers with words", async () => "no"],
  ])("is needed where the rule %s", async (_what, rule) => {
    expect(await asked(wrong(rule), { path: "a" })).toEqual(all(true));
  });

  test("asks a rule with its own `this`", async () => {
    class Guarded {
      readonly description = "Probes";
      readonly inputSchema = inputSchema;
      readonly allowed = "a";
      needsApproval({ path }: Input): boolean {
        return path !== this.allowed;
      }
      execute(): string {
        return "";
      }
    }
    const definition = defineTools({ name: "probes", produces: ["Probe"], build: () => ({ Probe: new Guarded() }) });
    const bound = (await bindTools(definition, scene())).get("Probe");
    expect(await bound?.needsApproval({ path: "a" })).toBe(false);
    expect(await bound?.needsApproval({ path: "b" })).toBe(true);
  });
});
