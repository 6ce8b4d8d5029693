/**
 * "What changed, and by whom", answered from the journals (U1, E3): for each path the session, turn, step, tool call and
 * command that left it as it is, by library and command line; and what a call costs the journal.
 */
import { expect, it } from "vitest";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { Session } from "../../src/session/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { looprig } from "../cases/command-line.js";
import { Playground } from "../playground.js";

async function start(place: Playground, steps: readonly ScriptStep[], shared = false): Promise<Session> {
  const loop = defineLoop({
    ...{ name: "operator", model: scriptedModel(steps), tools: [fileTools(), bash({ needsApproval: false })] },
  });
  const root = { root: place.root };
  const rig = { storage: await place.storage(), loops: [loop], snapshots: "manual" } as const;
  const define = rigDefiner(() => ({}));
  return shared
    ? define({ ...rig, sharedWorkspace: root }).startSession()
    : define({ ...rig, exclusiveWorkspace: root }).startSession();
}

async function work(session: Session): Promise<readonly SessionEvent[]> {
  const turn = await session.submit("work");
  const events: SessionEvent[] = [];
  for await (const part of turn) if ("seq" in part) events.push(part);
  expect(await turn.done).toMatchObject({ status: "done" });
  await session.idle();
  return events;
}

const write = (file_path: string, content: string) => ({ tool: "Write", input: { file_path, content } });
const shell = (command: string) => ({ tool: "Bash", input: { command } });

it("names session, turn, step, tool call and command of each path, and what nobody of ours wrote as foreign", async () => {
  await using place = new Playground("root", { quick: true });
  place.write({ theirs: "0\n" });
  await using session = await start(place, [
    { calls: [write("made", "by Write\n")] },
    { calls: [shell("echo by Bash > built")] },
    { text: "Done." },
  ]);
  const events = await work(session);
  place.write({ theirs: "1\n" });
  const started = events.filter((event) => event.type === "tool-started");
  const of = (tool: string) => {
    const found = started.find(({ name }) => name === tool);
    const { turnId, stepId, callId } = found ?? {};
    return { sessionId: session.id, turnId, turn: 1, stepId, callId, tool };
  };
  expect(await session.workspace.changes({ since: "t1^" })).toEqual([
    {
      ...{ path: "built", kind: "added", entry: "file", captured: true },
      by: { kind: "session", strength: "window", ...of("Bash"), command: "echo by Bash > built" },
    },
    {
      ...{ path: "made", kind: "added", entry: "file", captured: true },
      by: { kind: "session", strength: "recorded", ...of("Write") },
    },
    { path: "theirs", kind: "edited", entry: "file", captured: true, by: { kind: "foreign" } },
  ]);
  expect(of("Bash").stepId).not.toBe(of("Write").stepId);
  await session.close();

  // The same of a session that is over, as anybody may ask.
  const told = await looprig(place, ["undo", "t1", "--dry-run", "--json"]);
  expect(JSON.parse(told.stdout)).toMatchObject({ deleted: ["built", "made"] });
  const status = await looprig(place, ["status"]);
  expect(status.stdout).toMatch(
    /^ {2}A built {2}\+1 -0 {5}Bash: echo by Bash > built, in the window, not proven ours$/m,
  );
  expect(status.stdout).toMatch(/^ {2}A made {3}\+1 -0 {5}Write$/m);
  expect(status.stdout).toMatch(/^not by looprig, since c\d\n {2}M theirs$/m);
  await using again = await place.open();
  expect(await again.changes({ since: "t1^" })).toMatchObject([
    {
      path: "built",
      by: { kind: "other-session", strength: "window", ...of("Bash"), command: "echo by Bash > built" },
    },
    { path: "made", by: { kind: "other-session", strength: "recorded", ...of("Write") } },
    { path: "theirs", by: { kind: "foreign" } },
  ]);
});

it("names the command of exec, and in a shared root every other window that was open on the path", async () => {
  await using place = new Playground("root", { quick: true });
  await using one = await place.open({ shared: true });
  await using two = await place.open({ shared: true });
  // Each waits for the other to have begun, so that the two windows overlap whichever was opened first.
  const script = (name: string, other: string): string =>
    `echo ${name} > ${name}; until [ -e ${other} ]; do sleep 0.02; done; echo both > both`;
  const [first, second] = await Promise.all([
    one.exec(place.sh(script("one", "two")), { stdio: "ignore" }),
    two.exec(place.sh(script("two", "one")), { stdio: "ignore" }),
  ]);
  const turns = [
    { sessionId: one.sessionId, turn: first.turn },
    { sessionId: two.sessionId, turn: second.turn },
  ];
  const both = (await one.changes({ since: "c1" })).find(({ path }) => path === "both");
  if (both?.by.kind !== "session" && both?.by.kind !== "other-session") throw new Error("a window explains it");
  const { sessionId, turn, overlaps = [], command, strength } = both.by;
  expect([{ sessionId, turn }, ...overlaps].sort((a, b) => (a.turn ?? 0) - (b.turn ?? 0))).toEqual(
    [...turns].sort((a, b) => a.turn - b.turn),
  );
  expect([strength, command]).toEqual(["window", expect.stringContaining("echo both > both")]);
  // Whoever ended last knew of the other when it told what it had changed.
  const last = [first, second].map(({ changes }) => changes.find(({ path }) => path === "both")?.by);
  expect(last.some((by) => by?.kind === "session" && by.overlaps?.length === 1)).toBe(true);
  const plan = await one.plan({ kind: "undo", includeWindow: true });
  expect(plan.conflicts.map(({ path }) => path)).toContain("both");

  await one.close();
  await two.close();
  const told = await looprig(place, ["status"]);
  expect(told.stdout).toMatch(/^ {2}A both .* [0-9a-f]{4,} t[12] at the same time$/m);
});

it("costs the journal the same for a command, whatever it changed (E3)", async () => {
  /** The length of what the journal took for the one call of a turn, but for what the command itself is. */
  const cost = async (files: number): Promise<{ types: readonly string[]; length: number }> => {
    await using place = new Playground("root", { quick: true });
    place.write(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`d${i % 10}/f${i}`, `${i}\n`])));
    const command = `n=${String(files).padStart(3, "0")}; for f in $(ls -d */* | head -n $n); do echo changed > $f; done`;
    await using session = await start(place, [{ calls: [shell(command)] }, { text: "Done." }]);
    const events = (await work(session)).filter(({ type }) => /^(?:workspace-|window-|process-|tool-)/.test(type));
    expect((await session.workspace.changes({ since: "t1^" })).length).toBe(files);
    return { types: events.map(({ type }) => type), length: JSON.stringify(events).length };
  };
  const [one, many] = [await cost(1), await cost(200)];
  expect(many.types).toEqual(one.types);
  // Ids and times differ in a digit or two; not by paths.
  expect(Math.abs(many.length - one.length)).toBeLessThan(40);
});
