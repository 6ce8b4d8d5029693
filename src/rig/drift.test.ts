import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson } from "../core/index.js";
import type { Json } from "../core/index.js";
import { compareManifests } from "./drift.js";
import type { RigManifest } from "./manifest.js";

const base: RigManifest = {
  placement: { mode: "exclusive", root: "/srv/repo" },
  snapshots: { trigger: "idle", priority: "best-effort", timeoutMs: 60_000 },
  loops: {
    critic: {
      model: { specification: "v3", provider: "maker", modelId: "small" },
      tools: [],
      limits: { steps: 50, toolCalls: 500 },
    },
    operator: {
      model: { specification: "v3", provider: "maker", modelId: "large" },
      system: `sha256:${"a".repeat(64)}`,
      tools: [{ name: "files", produces: ["Read", "Write"], requires: ["workspace"] }],
      limits: { steps: 50, toolCalls: 500 },
    },
  },
  primers: ["operator"],
  activePrimer: "operator",
};
const operator = base.loops["operator"];
if (operator === undefined) throw new Error("the base has an operator");
const withOperator = (change: object): Json => ({
  ...base,
  loops: { ...base.loops, operator: { ...operator, ...change } },
});
const summary = (stored: Json, live: Json, used?: readonly string[]): readonly string[] =>
  compareManifests(stored, live, used).map(({ severity, field }) => `${severity} ${field}`);

describe("R5: severity", () => {
  test.each<[string, Json, readonly string[]]>([
    ["another mode", { ...base, placement: { mode: "shared", root: "/srv/repo" } }, ["breaking placement.mode"]],
    ["another fixed root", { ...base, placement: { mode: "exclusive", root: "/srv/x" } }, ["breaking placement.root"]],
    [
      "another mode and fixed root",
      { ...base, placement: { mode: "shared", root: "/srv/x" } },
      ["breaking placement.mode", "breaking placement.root"],
    ],
    [
      "session roots instead",
      { ...base, placement: { mode: "session", baseDir: "/srv" } },
      ["breaking placement.mode"],
    ],
    ["no placement any more", { ...base, placement: { mode: "none" } }, ["breaking placement.mode"]],
    ["another model", withOperator({ model: { ...operator.model, modelId: "new" } }), ["notable loops.operator.model"]],
    [
      "another specification",
      withOperator({ model: { ...operator.model, specification: "v4" } }),
      ["notable loops.operator.model"],
    ],
    ["another system", withOperator({ system: "sha256:other" }), ["notable loops.operator.system"]],
    ["no system any more", withOperator({ system: undefined }), ["notable loops.operator.system"]],
    ["other tools", withOperator({ tools: [] }), ["notable loops.operator.tools"]],
    ["other limits", withOperator({ limits: { steps: 1, toolCalls: 1 } }), ["notable loops.operator.limits"]],
    [
      "another policy",
      { ...base, snapshots: { trigger: "manual", priority: "required", timeoutMs: 1 } },
      ["notable snapshots"],
    ],
    ["other capture settings", { ...base, capture: { exclude: ["/x"] } }, ["notable capture"]],
    ["other primers", { ...base, primers: ["critic", "operator"] }, ["notable primers"]],
    ["another active primer", { ...base, activePrimer: "critic" }, ["notable activePrimer"]],
    ["a new loop", { ...base, loops: { ...base.loops, third: operator } }, ["notable loops.third"]],
  ])("%s", (_name, live, wanted) => {
    expect(summary(base, live)).toEqual(wanted);
  });

  test("another base directory is notable", () => {
    const at = (baseDir: string): Json => ({ ...base, placement: { mode: "session", baseDir } });
    expect(summary(at("/a"), at("/b"))).toEqual(["notable placement.baseDir"]);
  });

  test("a loop that is gone is breaking when the session uses it, and when nobody says whether it does", () => {
    const { critic: _critic, ...loops } = base.loops;
    const live: Json = { ...base, loops };
    expect(summary(base, live, ["operator", "critic"])).toEqual(["breaking loops.critic"]);
    expect(summary(base, live, ["operator"])).toEqual(["notable loops.critic"]);
    expect(summary(base, live)).toEqual(["breaking loops.critic"]);
  });

  test("a change says what was stored and what is live, and null where there was nothing", () => {
    const live: Json = { ...base, capture: { strict: true }, activePrimer: "critic" };
    expect(compareManifests(base, live)).toEqual([
      { field: "activePrimer", stored: "operator", live: "critic", severity: "notable" },
      { field: "capture", stored: null, live: { strict: true }, severity: "notable" },
    ]);
  });
});

test("R4: an equal configuration is no drift, whatever the order of its members", () => {
  const { loops, ...others } = base;
  const turned: Json = { loops: Object.fromEntries(Object.entries(loops).reverse()), ...others };
  expect(compareManifests(base, turned)).toEqual([]);
});

describe("a stored manifest from elsewhere", () => {
  test("with members this release does not know is notable, not lost", () => {
    expect(summary({ ...base, budget: { tokens: 5 } }, base)).toEqual(["notable budget"]);
    expect(summary(withOperator({ effort: "high" }), base)).toEqual(["notable loops.operator.effort"]);
  });

  test.each([null, 7, "text", [], {}, { placement: 3, loops: [] }])("that is none (%j) is breaking", (stored) => {
    expect(summary(stored, base)).toContain("breaking placement.mode");
  });

  test("with a loop called __proto__ is read as it stands", () => {
    const stored = JSON.parse('{"loops":{"__proto__":{"system":"x"}}}') as Json;
    expect(summary(stored, {})).toEqual(["breaking loops.__proto__"]);
    expect(summary({}, stored)).toEqual(["notable loops.__proto__"]);
  });
});

describe("for any two manifests", () => {
  const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
  const placement = fc.oneof(
    fc.record({ mode: fc.constantFrom("exclusive", "shared"), root: fc.constantFrom("/a", "/b") }),
    fc.record({ mode: fc.constant("session"), baseDir: fc.constantFrom("/a", "/b") }),
    fc.constant({ mode: "none" }),
  );
  const loop = fc.record(
    { model: fc.constantFrom("m", "n"), system: fc.constantFrom("s", "t"), limits: fc.nat(2), tools: fc.constant([]) },
    { requiredKeys: ["model", "tools"] },
  );
  const manifest = fc.record(
    {
      placement,
      loops: fc.dictionary(fc.constantFrom("a", "b", "__proto__"), loop),
      snapshots: fc.constantFrom("idle", "manual"),
      extra: json,
    },
    { requiredKeys: ["placement", "loops"] },
  ) as fc.Arbitrary<Json>;

  test("there are changes exactly when their canonical JSON differs", () => {
    fc.assert(
      fc.property(manifest, manifest, (stored, live) => {
        // A member that says null says what an absent one does.
        fc.pre(!canonicalJson([stored, live]).includes("null"));
        expect(compareManifests(stored, live).length > 0).toBe(canonicalJson(stored) !== canonicalJson(live));
      }),
    );
  });

  test("the fields that changed are the same both ways, with the values exchanged", () => {
    fc.assert(
      fc.property(manifest, manifest, (stored, live) => {
        const pairs = (a: Json, b: Json) =>
          compareManifests(a, b).map(({ field, stored: x, live: y }) => [field, x, y]);
        expect(pairs(stored, live)).toEqual(pairs(live, stored).map(([field, x, y]) => [field, y, x]));
      }),
    );
  });

  test("anything at all can be compared", () => {
    fc.assert(fc.property(json, json, (a, b) => Array.isArray(compareManifests(a, b))));
  });
});
