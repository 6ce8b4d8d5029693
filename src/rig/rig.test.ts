import os from "node:os";
import { describe, expect, test } from "vitest";
import { mintSessionId } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { compareManifests } from "./drift.js";
import { defineUntyped, namedLoop, RecordingRuntime } from "./testing/rigs.js";

const storage = createMemoryStorage();
const seed = `v1:sha256:${"0".repeat(64)}`;

function rigs() {
  const runtime = new RecordingRuntime();
  const options = { storage, loops: [namedLoop("operator")] };
  const placement = { sessionWorkspaces: { baseDir: `${os.tmpdir()}/looprig-none` }, snapshots: "idle" };
  return {
    runtime,
    placed: defineUntyped({ ...options, ...placement }, { sessions: runtime }),
    bare: defineUntyped(options, { sessions: runtime }),
  };
}
const code = (expected: string, details: unknown = expect.anything()) =>
  expect.objectContaining({ code: expected, details }) as Error;

describe("starting a session", () => {
  test("hands its options on, and the session back", async () => {
    const { runtime, placed } = rigs();
    const { signal } = new AbortController();
    expect(await placed.startSession({ seed, signal })).toBe(runtime.session);
    expect(runtime.started).toEqual([
      {
        definition: expect.objectContaining({ fingerprint: placed.fingerprint }) as unknown,
        options: { seed, signal },
      },
    ]);
  });

  test("from one rig uses one definition each time", async () => {
    const { runtime, placed } = rigs();
    await placed.startSession();
    await placed.startSession();
    expect(runtime.started[0]?.definition).toBe(runtime.started[1]?.definition);
  });

  test.each<[string, unknown, string]>([
    ["a short seed", { seed: "c12" }, "ref.invalid"],
    ["a seed that is no text", { seed: 7 }, "option.invalid"],
    ["a misspelt option", { sead: seed }, "option.invalid"],
    ["no options", null, "option.invalid"],
  ])("with %s rejects, and starts none", async (_name, options, wanted) => {
    const { runtime, placed } = rigs();
    await expect(placed.startSession(options as never)).rejects.toThrow(code(wanted));
    expect(runtime.started).toEqual([]);
  });

  test("P2: with a seed and no placement is refused: there is no workspace", async () => {
    const { runtime, bare } = rigs();
    await expect(bare.startSession({ seed })).rejects.toThrow(code("workspace.unavailable", {}));
    expect(runtime.started).toEqual([]);
  });
});

describe("resuming a session", () => {
  test("hands its options on, with what compares manifests", async () => {
    const { runtime, placed } = rigs();
    const id = mintSessionId();
    const onDrift = (): "accept" => "accept";
    expect(await placed.resumeSession(id, { root: "adopt", onDrift })).toBe(runtime.session);
    expect(runtime.resumed).toEqual([
      { id, options: { root: "adopt", onDrift, signal: undefined, drift: compareManifests } },
    ]);
  });

  test.each([
    "",
    "x",
    "00000000-0000-0000-0000-000000000000",
    mintSessionId().toUpperCase(),
    `{${mintSessionId()}}`,
    "../a",
  ])("R6: by %j is refused, since it is no session id", async (id) => {
    const { runtime, placed } = rigs();
    await expect(placed.resumeSession(id)).rejects.toThrow(code("session_id.invalid", { given: id }));
    expect(runtime.resumed).toEqual([]);
  });

  test.each<[string, unknown]>([
    ["root", "create"],
    ["root", true],
    ["onDrift", "accept"],
    ["ondrift", () => "accept"],
    ["drift", () => []],
  ])("R7, R5: with a wrong %s rejects, and resumes none", async (field, value) => {
    const { runtime, placed } = rigs();
    await expect(placed.resumeSession(mintSessionId(), { [field]: value })).rejects.toThrow(
      code("option.invalid", expect.objectContaining({ field })),
    );
    expect(runtime.resumed).toEqual([]);
  });

  test("with a root to adopt and no placement is refused: there is no workspace", async () => {
    const { bare } = rigs();
    await expect(bare.resumeSession(mintSessionId(), { root: "adopt" })).rejects.toThrow(code("workspace.unavailable"));
  });

  test("by something that is no text is refused", async () => {
    const { placed } = rigs();
    await expect(placed.resumeSession(undefined as never)).rejects.toThrow(code("option.invalid"));
  });
});
