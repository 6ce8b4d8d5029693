import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { bash, fileTools } from "../builtin-tools/index.js";
import { canonicalJson } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { defineLoop } from "../loop/index.js";
import type { PlacementDefinition, SnapshotPolicy } from "../session/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { defineTools, jsonSchema, tool } from "../tool/index.js";
import type { ToolDefinition } from "../tool/index.js";
import { fingerprintOf, manifestOf } from "./manifest.js";
import type { DescribedRig } from "./manifest.js";
import { namedLoop, namedModel, toolThatNeeds } from "./testing/rigs.js";

const store = createMemoryStorage();
const someTool = tool({ description: "Does nothing", inputSchema: jsonSchema({ type: "object" }), execute: () => "" });
const idle: SnapshotPolicy = { trigger: "idle", priority: "best-effort", timeoutMs: 60_000 };
const placed = (placement: { readonly mode: "exclusive" | "shared" } | { readonly mode: "session" }) =>
  (placement.mode === "session"
    ? { ...placement, baseDir: "/srv/repo", store, capture: {} }
    : { ...placement, root: "/srv/repo", store, capture: {} }) as PlacementDefinition;

const rig = (changes: Partial<DescribedRig> = {}): DescribedRig => ({
  loops: [
    defineLoop({
      name: "operator",
      model: namedModel("large"),
      system: "Be brief.",
      tools: [toolThatNeeds("workspace"), toolThatNeeds()],
      limits: { steps: 7, toolCalls: 20 },
    }),
    namedLoop("critic"),
  ],
  primers: ["operator", "critic"],
  activePrimer: "operator",
  placement: { ...placed({ mode: "exclusive" }), capture: { vcs: "omit", exclude: ["/b", "/a"] } },
  snapshots: idle,
  ...changes,
});
const fingerprint = (changes: Partial<DescribedRig> = {}): string => fingerprintOf(manifestOf(rig(changes)));

// These two texts stand in journals. A release that makes others of the same rig would call every session drifted.
const golden =
  '{"activePrimer":"operator","capture":{"exclude":["/b","/a"],"vcs":"omit"},"loops":{"critic":{"limits":{"steps":50,"toolCalls":500},"model":{"modelId":"one","provider":"maker","specification":"v3"},"tools":[]},"operator":{"limits":{"steps":7,"toolCalls":20},"model":{"modelId":"large","provider":"maker","specification":"v3"},"system":"sha256:213c22ed7234eb11116e1e88f314c73cb3a019b5c87fe224b6ce5665bd9ec50e","tools":[{"name":"free","produces":["free"],"requires":[]},{"name":"workspace","produces":["workspace"],"requires":["workspace"]}]}},"placement":{"mode":"exclusive","root":"/srv/repo"},"primers":["critic","operator"],"snapshots":{"priority":"best-effort","timeoutMs":60000,"trigger":"idle"}}';
const goldenFingerprint = "9f53a1b16240bdf365de264b288cd7f1dd60be621b502d58767c777c22d40417";

describe("R4: the manifest", () => {
  test("is what it always was: golden vector", () => {
    expect(canonicalJson(manifestOf(rig()))).toBe(golden);
    expect(fingerprint()).toBe(goldenFingerprint);
    expect(goldenFingerprint).toBe(createHash("sha256").update(golden).digest("hex"));
  });

  test("is the same in whatever order loops, primers, tools and settings were given", () => {
    const { loops } = rig();
    const [operator, critic] = loops;
    if (operator === undefined || critic === undefined) throw new Error("two loops");
    const turned = rig({
      loops: [critic, defineLoop({ ...operator, tools: [...operator.tools].reverse() })],
      primers: ["critic", "operator"],
      placement: { ...placed({ mode: "exclusive" }), capture: { exclude: ["/b", "/a"], vcs: "omit" } },
    });
    expect(canonicalJson(manifestOf(turned))).toBe(golden);
  });

  test.each<[string, Partial<DescribedRig>]>([
    ["mode", { placement: { ...placed({ mode: "shared" }), capture: { vcs: "omit", exclude: ["/b", "/a"] } } }],
    [
      "root",
      { placement: { ...placed({ mode: "exclusive" }), root: "/srv/x" as CanonicalRoot } as PlacementDefinition },
    ],
    ["order of exclude lines", { placement: { ...placed({ mode: "exclusive" }), capture: { exclude: ["/a", "/b"] } } }],
    ["trigger", { snapshots: { ...idle, trigger: "manual" } }],
    ["priority", { snapshots: { ...idle, priority: "required" } }],
    ["time-out", { snapshots: { ...idle, timeoutMs: 1 } }],
    ["primers", { primers: ["operator"] }],
    ["active primer", { activePrimer: "critic" }],
    ["loops", { loops: rig().loops.slice(0, 1) }],
    ["model", { loops: [defineLoop({ name: "operator", model: namedModel("other") })] }],
    ["provider", { loops: [defineLoop({ name: "operator", model: namedModel("large", "other") })] }],
  ])("differs with another %s", (_name, changes) => {
    expect(fingerprint(changes)).not.toBe(fingerprint());
  });

  test("holds the digest of what loops are told, never the text", () => {
    const secret = "the launch code is 0000";
    const loops = [defineLoop({ name: "operator", model: namedModel(), system: secret })];
    const text = canonicalJson(manifestOf(rig({ loops })));
    expect(text).not.toContain("launch");
    expect(text).toContain(createHash("sha256").update(secret).digest("hex"));
    expect(fingerprint({ loops })).not.toBe(
      fingerprint({ loops: [defineLoop({ name: "operator", model: namedModel(), system: `${secret}!` })] }),
    );
  });

  test("tells no prompt from an empty one", () => {
    const told = (system?: string) => fingerprint({ loops: [defineLoop({ name: "a", model: namedModel(), system })] });
    expect(told()).not.toBe(told(""));
  });

  test("of session workspaces holds the base directory, of no placement neither root nor policy", () => {
    expect(manifestOf(rig({ placement: placed({ mode: "session" }) })).placement).toEqual({
      mode: "session",
      baseDir: "/srv/repo",
    });
    const none = manifestOf(rig({ placement: undefined, snapshots: undefined }));
    expect(none.placement).toEqual({ mode: "none" });
    expect(Object.keys(none)).not.toContain("snapshots");
    expect(Object.keys(none)).not.toContain("capture");
  });

  test("names looprig's own tools by their contract, and what the caller chose of them", () => {
    const toolsOf = (...tools: ToolDefinition[]) =>
      manifestOf(rig({ loops: [defineLoop({ name: "a", model: namedModel(), tools })] })).loops["a"]?.tools;
    // These stand in journals: a contract's number changes only with what the tools promise.
    expect(toolsOf(fileTools(), bash())).toEqual([
      { contract: 1, name: "bash" },
      { contract: 1, name: "files" },
    ]);
    expect(toolsOf(bash({ needsApproval: false }))).toEqual([
      { contract: 1, name: "bash", settings: { needsApproval: false } },
    ]);
    expect(toolsOf(bash({ needsApproval: ({ command }) => command !== "true" }))).toEqual([
      { contract: 1, name: "bash", settings: { needsApproval: "by rule" } },
    ]);
    // A tool of the same names that somebody else made is another tool.
    const imitation = defineTools({ name: "bash", produces: ["Bash"], build: () => ({ Bash: someTool }) });
    expect(toolsOf(imitation)).toEqual([{ name: "bash", produces: ["Bash"], requires: [] }]);
  });

  test("cannot be changed", () => {
    const frozen = (value: unknown): boolean =>
      typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen));
    expect(frozen(manifestOf(rig()))).toBe(true);
  });
});
