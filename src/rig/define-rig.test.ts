/** What a definition refuses, rule by rule, on real directories; and that it writes and acquires nothing. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { interceptFileSystem, isLooprigError, nodeFileSystem, sha256Hex } from "../core/index.js";
import { defineLoop } from "../loop/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import { openLocalStorage } from "../storage-local/index.js";
import { canonicalPath, openWorkspace } from "../workspace/index.js";
import type { RigWorld } from "./define-rig.js";
import { definitionOf, defineUntyped, namedLoop, namedModel, toolThatNeeds } from "./testing/rigs.js";

let dir: string;
beforeEach(() => {
  dir = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
  fs.mkdirSync(path.join(dir, "repo/sub"), { recursive: true });
  fs.symlinkSync("repo", path.join(dir, "link"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const at = (...names: string[]): string => path.join(dir, ...names);
const storage = createMemoryStorage();
const loops = [namedLoop("operator")];
const placed = (option: string, members: object = {}) => ({
  ...{ storage, loops },
  snapshots: "idle",
  [option]: option === "sessionWorkspaces" ? { baseDir: at("repo"), ...members } : { root: at("repo"), ...members },
});
const options = ["exclusiveWorkspace", "sessionWorkspaces", "sharedWorkspace"] as const;

/** Code and details of the refusal; undefined when there is none. */
function refusal(given: unknown, world?: RigWorld): { readonly code: string; readonly details: unknown } | undefined {
  try {
    defineUntyped(given, world);
    return undefined;
  } catch (error) {
    if (!isLooprigError(error)) throw error;
    expect(error.message).toMatch(/^Cannot /);
    return { code: error.code, details: error.details };
  }
}
const refused = (code: string, details: unknown) => ({ code, details });

describe("P1: the placement a session is given", () => {
  test("is the one that was asked for, with its canonical path", async () => {
    expect((await definitionOf(placed("exclusiveWorkspace"))).placement).toEqual({
      ...{ mode: "exclusive", root: at("repo"), capture: {} },
      store: storage,
    });
    expect((await definitionOf(placed("sharedWorkspace"))).placement).toMatchObject({
      ...{ mode: "shared", root: at("repo") },
    });
    expect((await definitionOf(placed("sessionWorkspaces"))).placement).toMatchObject({
      ...{ mode: "session", baseDir: at("repo") },
    });
  });

  test("is none when none was asked for", async () => {
    const definition = await definitionOf({ storage, loops });
    expect(definition.placement).toBeUndefined();
    expect(definition.snapshots).toBeUndefined();
  });
});

describe("P2: one placement", () => {
  test.each([
    [["exclusiveWorkspace", "sessionWorkspaces"]],
    [["exclusiveWorkspace", "sharedWorkspace"]],
    [["sessionWorkspaces", "sharedWorkspace"]],
    [[...options]],
  ])("%j together are refused", (given) => {
    const all = Object.assign({}, ...given.map((option) => placed(option))) as object;
    expect(refusal(all)).toEqual(refused("workspace_placement.multiple_placements", { given }));
  });

  test("one that is undefined is not there", () => {
    expect(refusal({ ...placed("sharedWorkspace"), exclusiveWorkspace: undefined })).toBeUndefined();
  });
});

describe("P3: a tool that needs a workspace", () => {
  test.each([["workspace" as const], ["workspace-read" as const]])("%s without a placement is refused", (needs) => {
    const tool = toolThatNeeds(needs);
    const guilty = [namedLoop("operator", [toolThatNeeds()]), namedLoop("helper", [toolThatNeeds("process"), tool])];
    expect(refusal({ storage, loops: guilty })).toEqual(
      refused("workspace_placement.tool_without_placement", { tool: tool.name }),
    );
    expect(refusal({ ...placed("sessionWorkspaces"), loops: guilty })).toBeUndefined();
  });

  test("other tools need none", () => {
    const harmless = [namedLoop("operator", [toolThatNeeds(), toolThatNeeds("delegate", "process")])];
    expect(refusal({ storage, loops: harmless })).toBeUndefined();
  });
});

describe("P4: a placement", () => {
  const unsupplied = () => ({ loops, snapshots: "idle" });

  test.each(options)("%s without a store, and no storage to supply it, is missing_store", (option) => {
    const { storage: _none, ...rest } = placed(option);
    const missing = refused("workspace_placement.missing_store", { placement: option });
    expect(refusal(rest)).toEqual(missing);
    expect(refusal({ ...rest, sessionStore: storage })).toEqual(missing);
    expect(refusal(placed(option, { store: null }))).toEqual(missing);
  });

  test("that is exclusive without a leaser, and no storage to supply it, is missing_leaser", () => {
    const missing = refused("workspace_placement.missing_leaser", { placement: "exclusiveWorkspace" });
    const withStore = { ...unsupplied(), exclusiveWorkspace: { root: at("repo"), store: storage } };
    expect(refusal(withStore)).toEqual(missing);
    expect(refusal({ ...withStore, sessionStore: storage })).toEqual(missing);
    expect(refusal(placed("exclusiveWorkspace", { leaser: null }))).toEqual(missing);
  });

  test.each(["sessionWorkspaces", "sharedWorkspace"])("of the kind %s needs no leaser, and takes none", (option) => {
    const { storage: _none, ...rest } = placed(option, { store: storage });
    expect(refusal({ ...rest, sessionStore: storage })).toBeUndefined();
    expect(refusal(placed(option, { leaser: storage }))).toEqual(
      refused("rig_definition.invalid", { field: `${option}.leaser`, wanted: expect.any(String) as string }),
    );
  });

  test("whose parts are all given needs no storage", () => {
    const parts = { ...unsupplied(), exclusiveWorkspace: { root: at("repo"), store: storage, leaser: storage } };
    expect(refusal({ ...parts, sessionStore: storage })).toBeUndefined();
    expect(refusal(parts)).toEqual(refused("rig_definition.missing_session_store", {}));
  });

  test.each(options)("%s with a blank or absent path is empty_root", (option) => {
    const place = option === "sessionWorkspaces" ? "baseDir" : "root";
    for (const blank of ["", " ", "\t\n", undefined, null]) {
      expect(refusal(placed(option, { [place]: blank }))).toEqual(
        refused("workspace_placement.empty_root", { option: `${option}.${place}` }),
      );
    }
  });

  test.each(options)("%s with a path that cannot be resolved is canonicalize_failed", (option) => {
    const place = option === "sessionWorkspaces" ? "baseDir" : "root";
    fs.writeFileSync(at("file"), "");
    fs.symlinkSync("loop", at("loop"));
    for (const bad of [at("file/below"), at("loop"), `${dir}/a\0b`, at("gone-\ufffd")]) {
      expect(refusal(placed(option, { [place]: bad }))).toEqual(
        refused("workspace_placement.canonicalize_failed", { option: `${option}.${place}`, path: bad }),
      );
    }
  });

  test.each(["exclusiveWorkspace", "sharedWorkspace"])("%s on too broad a root is root_too_broad", (option) => {
    fs.mkdirSync(at("home/me/work"), { recursive: true });
    const world = { homes: [at("home/me"), at("no/such/home/\0")] };
    for (const root of ["/", at("home/me"), at("home"), dir]) {
      expect(refusal(placed(option, { root }), world)).toEqual(
        refused("workspace_placement.root_too_broad", { root, reason: expect.any(String) as string }),
      );
      expect(refusal(placed(option, { root, allowBroadRoot: true }), world)).toBeUndefined();
    }
    expect(refusal(placed(option, { root: at("home/me/work") }), world)).toBeUndefined();
  });

  test("finds a home behind a link too broad as well", () => {
    fs.symlinkSync("repo", at("home"));
    expect(refusal(placed("exclusiveWorkspace"), { homes: [at("home")] })?.code).toBe(
      "workspace_placement.root_too_broad",
    );
  });

  test("may have a broad base directory: only its session directories are captured", () => {
    const world = { homes: [at("repo")] };
    for (const baseDir of [at("repo"), dir]) {
      expect(refusal(placed("sessionWorkspaces", { baseDir }), world)).toBeUndefined();
    }
    expect(refusal(placed("sessionWorkspaces", { allowBroadRoot: true }))?.code).toBe("rig_definition.invalid");
  });
});

describe("R1: aliases of one path", () => {
  test.each(options)("%s has one fingerprint and one path for them all", async (option) => {
    const place = option === "sessionWorkspaces" ? "baseDir" : "root";
    const cwd = at("repo/sub");
    const aliases = [
      at("repo"),
      `${at("repo")}/`,
      `${dir}//repo/.`,
      `${dir}/repo/sub/..`,
      `${dir}/absent/../repo`,
      "..",
      "../../link",
      at("link"),
      at("link/sub/.."),
    ];
    const found = await Promise.all(aliases.map((alias) => definitionOf(placed(option, { [place]: alias }), { cwd })));
    expect(new Set(found.map(({ fingerprint }) => fingerprint)).size).toBe(1);
    for (const { placement } of found) expect(Object.values(placement ?? {})).toContain(at("repo"));
  });

  test("a missing tail below a link is joined to where the link leads", async () => {
    const direct = await definitionOf(placed("exclusiveWorkspace", { root: at("repo/new/tree") }));
    const linked = await definitionOf(placed("exclusiveWorkspace", { root: at("link/new/tree") }));
    expect(linked.placement).toMatchObject({ root: at("repo/new/tree") });
    expect(linked.fingerprint).toBe(direct.fingerprint);
  });
});

test("R4: the fingerprint is the digest of the manifest, which names mode and path", () => {
  const rigs = options.map((option) => defineUntyped(placed(option)));
  expect(rigs.map(({ manifest }) => manifest.placement)).toEqual([
    { mode: "exclusive", root: at("repo") },
    { mode: "session", baseDir: at("repo") },
    { mode: "shared", root: at("repo") },
  ]);
  expect(new Set(rigs.map(({ fingerprint }) => fingerprint)).size).toBe(3);
  for (const { fingerprint } of rigs) expect(fingerprint).toMatch(/^[0-9a-f]{64}$/);
});

describe("B1: what is stored", () => {
  // Journal, leases, blobs and spool can each be somewhere else; every one of them counts.
  const parts = {
    journal: (where: string) => ({ sessionStore: withPaths(storage, [where]) }),
    lease: (where: string) => ({ leaser: { leaser: storage.leaser, persistencePaths: () => [where] } }),
    blobs: (where: string) => ({ store: withPaths(storage, [where]) }),
    spool: (where: string) => ({ store: { ...withPaths(storage, []), spoolDir: where } }),
    storage: (where: string) => ({ storage: withPaths(storage, [at("fine"), where]) }),
  };
  const rigWith = (option: (typeof options)[number], kept: object) => {
    const { sessionStore, storage: whole = storage, ...members } = kept as Record<string, unknown>;
    return { ...placed(option, members), storage: whole, sessionStore };
  };
  const cases = options.flatMap((option) =>
    (Object.keys(parts) as (keyof typeof parts)[])
      .filter((part) => part !== "lease" || option === "exclusiveWorkspace")
      .map((part) => [option, part] as const),
  );

  test.each(cases)("in the region of %s, as %s, overlaps: equal, below, through a link", (option, part) => {
    fs.symlinkSync("repo/not/yet", at("dangling"));
    for (const where of ["repo", "repo/", "repo/sub", "repo/not/yet/there", "link", "link/state", "dangling"]) {
      expect(refusal(rigWith(option, parts[part](`${dir}/${where}`)))).toEqual(
        refused("persistence.overlap", {
          root: at("repo"),
          persistencePath: canonicalPath(`${dir}/${where}`),
        }),
      );
    }
  });

  test.each(cases)("beside or above the region of %s, as %s, is fine", (option, part) => {
    for (const where of ["", "state", "repo-state", "rep", "repo/../state"]) {
      expect(refusal(rigWith(option, parts[part](`${dir}/${where}`)))).toBeUndefined();
    }
  });

  test("overlaps a region that is named through a link", () => {
    expect(
      refusal({ ...placed("exclusiveWorkspace", { root: at("link") }), ...parts.storage(at("repo/x")) })?.code,
    ).toBe("persistence.overlap");
  });

  test("matters to nobody without a placement", () => {
    expect(refusal({ loops, storage: withPaths(storage, ["/"]) })).toBeUndefined();
  });

  test("by a local storage is told by the storage itself", async () => {
    const local = await openLocalStorage({ dir: at("repo/state") });
    try {
      for (const option of options) {
        expect(refusal({ ...placed(option), storage: local })?.code).toBe("persistence.overlap");
        const beside = option === "sessionWorkspaces" ? { baseDir: at("repo/sub") } : { root: at("repo/sub") };
        expect(refusal({ ...placed(option, beside), storage: local })).toBeUndefined();
      }
    } finally {
      await local.close();
    }
  });

  const withPaths = (whole: Storage, paths: readonly string[]): Storage => ({
    ...whole,
    persistencePaths: () => paths,
  });
});

describe("S1: snapshots", () => {
  test.each(options)("are required with %s, and complete in the definition", async (option) => {
    const { snapshots: _none, ...rest } = placed(option);
    expect(refusal(rest)).toEqual(refused("snapshot_policy.required", { placement: option }));
    expect((await definitionOf(placed(option))).snapshots).toEqual({
      ...{ trigger: "idle", priority: "best-effort", timeoutMs: 60_000 },
    });
  });

  test("are forbidden without a placement, and cannot be required in a shared one", () => {
    expect(refusal({ storage, loops, snapshots: "idle" })).toEqual(refused("snapshot_policy.without_workspace", {}));
    expect(refusal({ ...placed("sharedWorkspace"), snapshots: { priority: "required" } })).toEqual(
      refused("snapshot_policy.shared_required", {}),
    );
  });
});

describe("the loops of a rig", () => {
  const two = [namedLoop("operator"), namedLoop("critic")];
  const invalid = (field: string) => refused("rig_definition.invalid", expect.objectContaining({ field }));

  test("are one or more", () => {
    expect(refusal({ storage, loops: [] })).toEqual(refused("rig_definition.no_loops", {}));
    for (const given of [undefined, null, "operator", namedLoop("operator")]) {
      expect(refusal({ storage, loops: given })).toEqual(invalid("loops"));
    }
  });

  test("have names of their own", () => {
    expect(refusal({ storage, loops: [...two, namedLoop("critic")] })).toEqual(
      refused("rig_definition.repeated_loop", { loop: "critic" }),
    );
  });

  test("are as defineLoop makes them, or are refused as it refuses", () => {
    for (const given of [undefined, null, {}, { name: "a" }, { name: "a b", model: namedModel() }]) {
      expect(refusal({ storage, loops: [given] })?.code).toMatch(/^(loop_definition|model)\./);
    }
    expect(refusal({ storage, loops: Array(1) })?.code).toBe("loop_definition.invalid");
  });

  test("of which the first is primer and active unless others are named", async () => {
    const { primers, activePrimer } = await definitionOf({ storage, loops: two });
    expect([primers, activePrimer]).toEqual([["operator"], "operator"]);
    const named = await definitionOf({ storage, loops: two, primers: ["critic", "operator"] });
    expect([named.primers, named.activePrimer]).toEqual([["critic", "operator"], "critic"]);
    const chosen = await definitionOf({
      storage,
      loops: two,
      primers: ["critic", "operator"],
      activePrimer: "operator",
    });
    expect(chosen.activePrimer).toBe("operator");
  });

  test("have primers among them", () => {
    const unknown = (primers: readonly unknown[], primer: string) => {
      expect(refusal({ storage, loops: two, primers })).toEqual(
        refused("rig_definition.unknown_primer", { primer, loops: ["operator", "critic"] }),
      );
    };
    unknown(["operator", "nobody"], '"nobody"');
    unknown([undefined], "absent");
    unknown([two[0]], "an object");
    for (const primers of [[], ["critic", "critic"], "critic", null]) {
      expect(refusal({ storage, loops: two, primers })).toEqual(invalid("primers"));
    }
  });

  test("have an active one among the primers", () => {
    for (const given of ["critic", "nobody", null]) {
      expect(refusal({ storage, loops: two, activePrimer: given })?.code).toBe("rig_definition.active_primer");
    }
  });
});

describe("plain JavaScript", () => {
  const invalid = (field: string) => refused("rig_definition.invalid", expect.objectContaining({ field }));

  test.each([undefined, null, "rig", 7, []])("that gives %j instead of options is refused", (given) => {
    expect(refusal(given)).toEqual(invalid(""));
  });

  test("that misspells an option is told which", () => {
    expect(refusal({ ...placed("exclusiveWorkspace"), primer: ["operator"] })).toEqual(invalid("primer"));
    expect(refusal({ storage, loops, exclusiveWorkspaces: { root: "." } })).toEqual(invalid("exclusiveWorkspaces"));
    expect(refusal(placed("exclusiveWorkspace", { alowBroadRoot: true }))).toEqual(
      invalid("exclusiveWorkspace.alowBroadRoot"),
    );
    expect(refusal(placed("sessionWorkspaces", { root: at("repo") }))).toEqual(invalid("sessionWorkspaces.root"));
    expect(refusal(placed("sharedWorkspace", { capture: { excludes: [] } }))).toEqual(
      invalid("sharedWorkspace.capture.excludes"),
    );
  });

  test("that gives a wrong type is told where", () => {
    for (const given of [null, "repo", 7, [at("repo")]]) {
      expect(refusal({ ...placed("exclusiveWorkspace"), exclusiveWorkspace: given })).toEqual(
        invalid("exclusiveWorkspace"),
      );
    }
    expect(refusal(placed("sharedWorkspace", { root: 7 }))).toEqual(invalid("sharedWorkspace.root"));
    expect(refusal(placed("sharedWorkspace", { allowBroadRoot: "yes" }))).toEqual(
      invalid("sharedWorkspace.allowBroadRoot"),
    );
    expect(refusal(placed("sharedWorkspace", { capture: { vcs: "git" } }))).toEqual(
      invalid("sharedWorkspace.capture.vcs"),
    );
    expect(refusal(placed("sharedWorkspace", { capture: "all" }))).toEqual(invalid("sharedWorkspace.capture"));
  });

  test("that gives something else as a store is told what is wanted of it", () => {
    const broken: readonly (readonly [string, unknown])[] = [
      ["storage", {}],
      ["storage", Promise.resolve(storage)],
      ["storage", { ...storage, ledger: {} }],
      ["storage", { ...storage, persistencePaths: undefined }],
      ["sessionStore", { kv: storage.kv, blobs: storage.blobs, persistencePaths: () => [] }],
    ];
    for (const [option, given] of broken) {
      expect(refusal({ ...placed("exclusiveWorkspace"), [option]: given })).toEqual(invalid(option));
    }
    const unlisted = { ...storage, persistencePaths: () => "/state" };
    expect(refusal({ ...placed("exclusiveWorkspace"), storage: unlisted })).toEqual(
      invalid("storage.persistencePaths()"),
    );
    const leaserAlone = placed("exclusiveWorkspace", { leaser: storage.leaser });
    expect(refusal(leaserAlone)).toEqual(invalid("exclusiveWorkspace.leaser"));
    const somewhere = placed("sharedWorkspace", { store: { ...storage, locality: "moon" } });
    expect(refusal(somewhere)).toEqual(invalid("sharedWorkspace.store.locality"));
  });
});

describe("a definition", () => {
  test("writes nothing, acquires nothing, and asks nothing of the storage but where it writes", () => {
    const untouchable = new Proxy({} as never, {
      get: (_target, name) => () => {
        throw new Error(`${String(name)} was called`);
      },
    });
    const stores = { ledger: untouchable, leaser: untouchable, kv: untouchable, blobs: untouchable };
    const effects: string[] = [];
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, effect }) => {
      if (effect) effects.push(name);
    });
    const before = fs.readdirSync(dir, { recursive: true });
    const given = { ...placed("exclusiveWorkspace", { root: at("new/root") }), storage: { ...storage, ...stores } };
    expect(refusal(given, { fileSystem })).toBeUndefined();
    expect(effects).toEqual([]);
    expect(fs.readdirSync(dir, { recursive: true })).toEqual(before);
  });

  test("is not changed by what happens to its options later", async () => {
    const exclude = ["/a"];
    const primers = ["operator"];
    const list: unknown[] = [...loops];
    const given = { ...placed("exclusiveWorkspace", { capture: { exclude } }), loops: list, primers };
    const rig = defineUntyped(given);
    const [definition, { fingerprint }] = [await definitionOf(given), rig];
    exclude.push("/b");
    primers.push("critic");
    list.push(namedLoop("critic"));
    Object.assign(given, { snapshots: "manual", exclusiveWorkspace: { root: "/elsewhere" } });
    expect(definition.placement).toMatchObject({ root: at("repo"), capture: { exclude: ["/a"] } });
    expect([definition.primers, definition.loops.map(({ name }) => name)]).toEqual([["operator"], ["operator"]]);
    expect(definition.snapshots?.trigger).toBe("idle");
    expect([rig.fingerprint, definition.fingerprint]).toEqual([fingerprint, fingerprint]);
  });

  test("is frozen, and an imitation of a loop is copied", async () => {
    const imitation = { name: "operator", model: namedModel(), limits: { steps: 3 } };
    const definition = await definitionOf({ ...placed("sessionWorkspaces"), loops: [imitation] });
    imitation.limits.steps = 4;
    expect(definition.loops).toEqual([defineLoop({ name: "operator", model: imitation.model, limits: { steps: 3 } })]);
    const { loops: held, primers, placement, snapshots, manifest } = definition;
    for (const each of [definition, held, held[0], primers, placement, placement?.capture, snapshots, manifest]) {
      expect(Object.isFrozen(each)).toBe(true);
    }
    expect(Object.isFrozen(defineUntyped(placed("sharedWorkspace")))).toBe(true);
  });

  test("reads each option once", () => {
    let reads = 0;
    const given = Object.defineProperty({ ...placed("sharedWorkspace"), loops: undefined }, "loops", {
      enumerable: true,
      get: () => (reads++ === 0 ? loops : []),
    });
    expect(refusal(given)).toBeUndefined();
    expect(reads).toBe(1);
  });

  test("of one storage hands on that very storage", async () => {
    for (const option of options) {
      const members = option === "exclusiveWorkspace" ? { store: storage, leaser: storage } : { store: storage };
      for (const given of [placed(option), { ...placed(option, members), sessionStore: storage }]) {
        const definition = await definitionOf(given);
        expect(definition.storage).toBe(storage);
        expect(definition.placement?.store).toBe(storage);
      }
    }
    expect((await definitionOf({ storage, loops })).storage).toBe(storage);
  });

  test("R2: names the lease of its root by the digest of the canonical root", async () => {
    const { placement } = await definitionOf(placed("exclusiveWorkspace", { root: at("link") }));
    if (placement?.mode !== "exclusive") throw new Error("the placement is exclusive");
    const workspace = await openWorkspace({ root: placement.root, storage: placement.store });
    try {
      const [lease] = await storage.leaser.list("workspace-roots/");
      expect(lease?.name).toBe(`workspace-roots/${sha256Hex(at("repo"))}`);
      expect(lease?.name).toMatch(/^workspace-roots\/[0-9a-f]{64}$/);
    } finally {
      await workspace.close();
    }
  });
});
