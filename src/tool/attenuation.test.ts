import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CanonicalRoot } from "../core/index.js";
import { createCoordinator } from "../workspace/index.js";
import { bindTools } from "./bind.js";
import { memberOf } from "./capabilities.js";
import type { BindingsFor, Capability } from "./capabilities.js";
import { defineReadTools, defineTool, defineTools } from "./definition.js";
import { anyObject, call, refusalOf, root, scene, simply, wrong } from "./testing/scenes.js";

const capabilities = ["workspace", "workspace-read", "delegate", "process"] as const;

/** What `build` is given by one binding. */
async function given<const R extends readonly Capability[]>(requires: R, available = scene()): Promise<BindingsFor<R>> {
  let received: BindingsFor<R> | undefined;
  const definition = defineTools({
    name: "probe",
    produces: ["Probe"],
    requires,
    build: (bindings: BindingsFor<R>) => {
      received = bindings;
      return { Probe: simply(() => "") };
    },
  });
  await bindTools(definition, available);
  if (received === undefined) throw new Error("build was not called");
  return received;
}

const ofTheLanguage = new Set<unknown>([Object.prototype, Function.prototype, Object.getPrototypeOf(async () => 1)]);

/** Every object and function that can be reached through properties, also those of prototypes and getters. */
function reachable(from: unknown): ReadonlySet<unknown> {
  const seen = new Set<unknown>();
  const rest = [from];
  while (rest.length > 0) {
    const next = rest.pop();
    if ((typeof next !== "object" && typeof next !== "function") || next === null || seen.has(next)) continue;
    // What the language itself has is no secret of ours.
    if (ofTheLanguage.has(next) || next instanceof AbortSignal) continue;
    seen.add(next);
    rest.push(Object.getPrototypeOf(next));
    for (const key of Reflect.ownKeys(next)) rest.push(Reflect.get(next, key));
  }
  return seen;
}

describe("T1 a build", () => {
  test("receives the ids and exactly the bindings it asked for, whatever else the loop has", async () => {
    await fc.assert(
      fc.asyncProperty(fc.subarray([...capabilities]), fc.subarray([...capabilities]), async (requires, absent) => {
        const lacking = absent.filter((capability) => !requires.includes(capability));
        const available = scene(Object.fromEntries(lacking.map((capability) => [memberOf[capability], undefined])));
        const bindings = await given(requires, available);
        expect(new Set(Reflect.ownKeys(bindings))).toEqual(
          new Set(["sessionId", "loopId", ...requires.map((capability) => memberOf[capability])]),
        );
        expect(bindings).toMatchObject({ sessionId: available.sessionId, loopId: available.loopId });
      }),
      { numRuns: 60 },
    );
  });

  test("finds nothing that was not asked for, nor anything inherited", async () => {
    const bindings = await given(["workspace-read"]);
    for (const name of ["workspace", "delegate", "process", "coordinator", "secret", "constructor", "toString"]) {
      expect(name in bindings).toBe(false);
    }
    expect(Object.getPrototypeOf(bindings)).toBe(null);
  });

  test("can change no object it is given, at any depth", async () => {
    const bindings = await given(capabilities);
    const objects = [...reachable(bindings)];
    expect(objects.length).toBeGreaterThan(10);
    for (const each of objects) expect(Object.isFrozen(each)).toBe(true);
  });

  test("shares no object and no function with another build of the same definition", async () => {
    const seen: object[] = [];
    const definition = defineTools({
      name: "probe",
      produces: ["Probe"],
      requires: ["workspace", "workspace-read", "delegate", "process"],
      build: (bindings) => {
        seen.push(bindings);
        return { Probe: simply(() => "") };
      },
    });
    const available = scene();
    const [one] = (await bindTools(definition, available)).values();
    const [other] = (await bindTools(definition, available)).values();
    expect(seen).toHaveLength(2);
    const second = reachable(seen[1]);
    expect([...reachable(seen[0])].filter((each) => second.has(each))).toEqual([]);
    expect(one).not.toBe(other);
  });

  test("reaches no object of the session's, only narrow stand-ins", async () => {
    const available = scene();
    const found = reachable(await given(capabilities, available));
    const { workspace, readWorkspace, delegate, process, coordinator } = available;
    for (const own of [workspace, workspace?.observations, readWorkspace, delegate, process, coordinator]) {
      expect(own).toBeDefined();
      expect(found.has(own)).toBe(false);
    }
  });

  test("of one tool gives its bindings to each call, in a fresh frozen context", async () => {
    const contexts: object[] = [];
    const definition = defineTool({
      name: "Probe",
      description: "Keeps its contexts",
      inputSchema: anyObject,
      requires: ["workspace-read"],
      execute: (_input, context) => {
        contexts.push(context);
        return context.readWorkspace.root;
      },
    });
    const bound = (await bindTools(definition, scene())).get("Probe");
    const first = call();
    expect(await bound?.execute({}, first)).toEqual({ text: root, isError: false });
    await bound?.execute({}, call());
    expect(Reflect.ownKeys(contexts[0] ?? {})).toEqual([
      "sessionId",
      "loopId",
      "readWorkspace",
      "signal",
      "callId",
      "progress",
    ]);
    expect(contexts[0]).toMatchObject({ signal: first.signal, callId: first.callId });
    expect(contexts[0]).not.toBe(contexts[1]);
    expect(contexts.every((context) => Object.isFrozen(context) && Object.getPrototypeOf(context) === null)).toBe(true);
  });
});

describe("T1 what a tool kept", () => {
  test("grants nothing after the end of its loop", async () => {
    const end = new AbortController();
    const { workspace, delegate, process } = await given(
      ["workspace", "delegate", "process"],
      scene({ ended: end.signal }),
    );
    await expect(workspace.observations?.withPath("a", async () => 1)).resolves.toBe(1);
    (await workspace.coordinator.acquire({ operation: "whole-mutation" })).release();
    end.abort();
    const attempts: readonly (readonly [Capability, () => unknown])[] = [
      ["workspace", () => workspace.coordinator.acquire({ operation: "whole-mutation" })],
      ["workspace", () => workspace.coordinator.assertHealthy()],
      ["workspace", () => workspace.observations?.invalidateAll()],
      ["workspace", () => workspace.observations?.withPath("a", async () => 1)],
      ["delegate", () => delegate.start("helper", "do it")],
      ["process", () => process.spawn(["true"])],
    ];
    for (const [binding, attempt] of attempts) {
      expect((await refusalOf("tool_binding.ended", attempt)).details).toEqual({ binding });
    }
  });

  test("is not even built when the loop has ended before", async () => {
    const error = await refusalOf("tool_binding.ended", () =>
      given(["delegate"], scene({ ended: AbortSignal.abort() })),
    );
    expect(error.message).toContain("has ended");
  });

  test("grants what it granted while the loop goes on", async () => {
    const { delegate, process } = await given(["delegate", "process"], scene({ ended: new AbortController().signal }));
    expect(await delegate.start("helper", "do it")).toBe("helper: do it");
    expect(await process.spawn(["ls", "-l"])).toBe(2);
  });
});

describe("T2 bindings", () => {
  test("have the members of their contracts", async () => {
    const bindings = await given(capabilities);
    const { workspace, readWorkspace } = bindings;
    expect(Reflect.ownKeys(workspace)).toEqual(["root", "coordinator", "observations"]);
    expect(Reflect.ownKeys(workspace.coordinator)).toEqual(["acquire", "assertHealthy"]);
    expect(Reflect.ownKeys(workspace.observations ?? {})).toEqual(["withPath", "invalidateAll"]);
    expect(Reflect.ownKeys(readWorkspace)).toEqual(["root"]);
    expect(Reflect.ownKeys(bindings.delegate)).toEqual(["start"]);
    expect(Reflect.ownKeys(bindings.process)).toEqual(["spawn"]);
  });

  test("have no observations where the loop keeps none", async () => {
    const coordinator = createCoordinator({ root });
    const { workspace } = await given(["workspace"], scene({ workspace: { root, coordinator } }));
    expect("observations" in workspace).toBe(false);
  });

  test("hand out permits of which nothing else can be reached", async () => {
    const { workspace } = await given(["workspace"]);
    const permit = await workspace.coordinator.acquire({ operation: "path-mutation", paths: ["a"] });
    expect(Reflect.ownKeys(permit)).toEqual(["release", "revoked", "assertHeld", Symbol.dispose]);
    for (const each of reachable(permit)) expect(Object.isFrozen(each)).toBe(true);
    permit.assertHeld();
    expect(permit.revoked.aborted).toBe(false);
    permit.release();
    permit.release();
    await refusalOf("coordinator.revoked", () => permit.assertHeld());
  });

  test("show what was observed, and take what is seen", async () => {
    const { workspace } = await given(["workspace"]);
    const { observations } = workspace;
    await observations?.withPath("a", async (path) => {
      expect(path.last).toBeUndefined();
      path.record({ kind: "absent" });
      expect(path.last).toEqual({ kind: "absent" });
      expect(Reflect.ownKeys(path)).toEqual(["last", "record"]);
    });
    expect(await observations?.withPath("a", async ({ last }) => last)).toEqual({ kind: "absent" });
  });
});

describe("T3 what is to be bound", () => {
  test.each(capabilities)("must be there: %s", async (capability) => {
    const available = scene({ [memberOf[capability]]: undefined });
    const error = await refusalOf("tool_definition.missing_binding", () => given([capability], available));
    expect(error.name).toBe("ToolDefinitionError");
    expect(error.details).toEqual({ tool: "probe", binding: capability });
    expect(error.message).toContain(
      ["delegate", "process"].includes(capability) ? "nothing supplies it yet" : "choose a placement that has it",
    );
    const nothing = scene({ [memberOf[capability]]: wrong(null) });
    await refusalOf("tool_definition.missing_binding", () => given([capability], nothing));
  });

  const healthy = createCoordinator({ root });
  const notRoots = [
    undefined,
    null,
    "",
    "  ",
    "project",
    "./project",
    "/project/",
    "/a/../b",
    "//a",
    "/a//b",
    "/a\0b",
    7,
  ];
  test.each([
    ...[undefined, null, "", "00000000-0000-0000-0000-000000000000", "x", 7].map(
      (id) => ["sessionId", { sessionId: wrong(id) }] as const,
    ),
    ...[undefined, null, "", " ", "00000000-0000-0000-0000-000000000000", 7].map(
      (id) => ["loopId", { loopId: wrong(id) }] as const,
    ),
    ...notRoots.map((root) => ["workspace.root", { workspace: { root: wrong(root), coordinator: healthy } }] as const),
    ...notRoots.map((root) => ["readWorkspace.root", { readWorkspace: { root: wrong(root) } }] as const),
    ["workspace", { workspace: wrong("/project") }] as const,
    ["workspace.coordinator.acquire", { workspace: wrong({ root }) }] as const,
    [
      "workspace.coordinator.assertHealthy",
      { workspace: wrong({ root, coordinator: { acquire: () => undefined } }) },
    ] as const,
    [
      "workspace.observations.withPath",
      { workspace: wrong({ root, coordinator: healthy, observations: {} }) },
    ] as const,
    ["readWorkspace", { readWorkspace: wrong("/project") }] as const,
    ["delegate.start", { delegate: wrong({}) }] as const,
    ["process.spawn", { process: wrong({ spawn: true }) }] as const,
  ])("is refused by the name of its field: %s of %j", async (field, changes) => {
    const error = await refusalOf("tool_definition.invalid_binding", () => given(capabilities, scene(changes)));
    expect(error.details).toEqual({ tool: "probe", field });
    expect(error.message).toContain(`\`${field}\``);
  });

  test("must be a workspace whose coordinator is healthy, and the error says why it is not", async () => {
    const lost = AbortSignal.abort(new Error("the lease expired"));
    const coordinator = createCoordinator({ root, health: { lost, assertHeld: () => undefined } });
    const error = await refusalOf("tool_definition.invalid_binding", () =>
      given(["workspace"], scene({ workspace: { root, coordinator } })),
    );
    expect(error.details.field).toBe("workspace.coordinator");
    expect(error.cause).toMatchObject({ code: "workspace_root.lease_lost" });
  });

  test("is not looked at when it was not required", async () => {
    const broken = scene({ workspace: wrong({ root: "" }), delegate: wrong(1), process: wrong({}) });
    expect(await given(["workspace-read"], broken)).toMatchObject({ readWorkspace: { root } });
  });

  test("is the root of the read binding and nothing else, for read tools", async () => {
    const definition = defineReadTools({
      name: "evidence",
      produces: ["Look"],
      build: (bindings) => ({ Look: simply(() => Reflect.ownKeys(bindings).map(String).join(" ")) }),
    });
    const elsewhere = "/elsewhere" as CanonicalRoot;
    const bound = (await bindTools(definition, scene({ readWorkspace: { root: elsewhere } }))).get("Look");
    expect(await bound?.execute({}, call())).toMatchObject({ text: "sessionId loopId readWorkspace" });
  });
});
