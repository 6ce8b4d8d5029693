/** What a session finds when it goes on: its tree in each placement (P1), its root (R7), its configuration (R5), its seed (E4). */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { fileTools } from "../../src/builtin-tools/index.js";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { DriftChange, Session } from "../../src/session/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import { Playground, listTree } from "../playground.js";
import { journalOf, only, put, rigOn, until, wrote } from "./scenes.js";
import type { Scene } from "./scenes.js";

const working = (placement: Scene["placement"]): Scene => ({
  ...{ placement, tools: [put] },
  steps: [wrote("f", "1"), { text: "One." }, { text: "Two." }, { text: "Three." }],
});

/** A session that wrote `f` and was closed. */
async function closed(place: Playground, placement: Scene["placement"], capture: Scene["capture"] = {}) {
  const rig = await rigOn(place, { ...working(placement), capture });
  const session = await rig.startSession();
  await (
    await session.submit("write")
  ).done;
  const { root } = session.workspace;
  await session.close();
  return { rig, id: session.id, root };
}

/** Another directory in the root's place; returns its tree. */
function strangers(root: string, files: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  fs.renameSync(root, `${root}-aside`);
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), content);
  }
  return listTree(root);
}

const resumes = async (place: Playground, session: Session): Promise<readonly string[]> =>
  only(await journalOf(await place.storage(), session.id), "workspace-checkpointed").map(({ trigger }) => trigger);

describe("P1: the tree on resume", () => {
  it.each(["exclusive", "shared"] as const)(
    "of a %s root is kept as it stands, and not captured for it",
    async (placement) => {
      await using place = new Playground();
      const { rig, id, root } = await closed(place, placement);
      fs.writeFileSync(path.join(root, "f"), "by somebody else");
      await using session = await rig.resumeSession(id);
      expect(place.read("f")).toBe("by somebody else");
      expect(await resumes(place, session)).not.toContain("resume");
    },
  );

  it("of a session's own root is captured and kept, when the directory is the one recorded", async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session");
    fs.writeFileSync(path.join(root, "f"), "by somebody else");
    await using session = await rig.resumeSession(id);
    expect(fs.readFileSync(path.join(root, "f"), "utf8")).toBe("by somebody else");
    expect((await resumes(place, session)).at(-1)).toBe("resume");
    // So it can be had back, whatever comes.
    await session.workspace.restore("c1", { exact: true });
    await session.workspace.undo();
    expect(fs.readFileSync(path.join(root, "f"), "utf8")).toBe("by somebody else");
  });

  it.each([
    ["absent", (root: string) => fs.rmSync(root, { recursive: true })],
    ["absent with its base", (root: string) => fs.rmSync(path.dirname(root), { recursive: true })],
    [
      "an empty directory that is another one",
      (root: string) => {
        fs.renameSync(root, `${root}-aside`);
        fs.mkdirSync(root);
      },
    ],
  ])("of a session's own root is built again where it is %s", async (_what, remove) => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session");
    const before = listTree(root);
    remove(root);
    await using session = await rig.resumeSession(id);
    expect(listTree(root)).toEqual(before);
    expect(await (await session.submit("go on")).done).toMatchObject({ status: "done", text: "Two." });
  });

  it("of a session's own root that somebody filled anew is the session's again, and a restore brings theirs back (U7)", async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session");
    const before = listTree(root);
    const theirs = strangers(root, { theirs: "!", "deep/f": "also theirs" });
    await using session = await rig.resumeSession(id);
    expect(listTree(root)).toEqual(before);
    expect(fs.readdirSync(path.dirname(root)).sort()).toEqual([id, `${id}-aside`]);
    const events = await journalOf(await place.storage(), id);
    const stored = only(events, "workspace-checkpointed").find(({ trigger }) => trigger === "pre-restore");
    const { ref, number } =
      only(events, "workspace-checkpointed")
        .filter(({ seq }) => seq < (stored?.seq ?? 0))
        .at(-1) ?? {};
    expect(only(events, "workspace-restored")).toMatchObject([
      { action: "restore", target: ref, from: stored?.ref, result: "done", kept: [] },
    ]);
    await session.workspace.restore(`c${stored?.number ?? 0}`);
    expect(listTree(root)).toEqual(theirs);
    await session.workspace.restore(`c${number ?? 0}`);
    expect(listTree(root)).toEqual(before);
    expect(await (await session.submit("go on")).done).toMatchObject({ status: "done", text: "Two." });
  });

  it("of a session's own root is the recorded directory from then on, with its mode (R7)", async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session");
    fs.chmodSync(root, 0o750);
    await (await rig.resumeSession(id)).close();
    strangers(root, { theirs: "!" });
    await (await rig.resumeSession(id)).close();
    expect(fs.statSync(root).mode & 0o777).toBe(0o750);
    const { ino } = fs.statSync(root);
    await using _session = await rig.resumeSession(id);
    expect(fs.statSync(root).ino).toBe(ino);
    expect(only(await journalOf(await place.storage(), id), "workspace-restored")).toHaveLength(1);
  });

  it("carries over what the stranger's capture omits: a fifo, a file over the limit, an excluded directory (U7)", async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session", { maxFileBytes: 10, exclude: ["cache"] });
    strangers(root, {
      small: "s",
      "deep/er/large": "larger than ten",
      "cache/a/b": "not captured",
      f: "their f, large",
    });
    execFileSync("mkfifo", [path.join(root, "deep/pipe")]);
    const { ino } = fs.statSync(path.join(root, "deep/er/large"));
    await using session = await rig.resumeSession(id);
    const after = listTree(root);
    expect(after).toMatchObject({ f: "file 644 1", "deep/pipe": "special", "cache/a/b": "file 644 not captured" });
    expect(after["deep/er/large"]).toBe("file 644 larger than ten");
    expect(fs.statSync(path.join(root, "deep/er/large")).ino).toBe(ino);
    expect(after["small"]).toBe(undefined);
    // Where the session has a file of that name, theirs stays where the event says.
    const [restored] = only(await journalOf(await place.storage(), id), "workspace-restored");
    expect(restored).toMatchObject({ result: "partly", kept: [{ path: "f" }] });
    const backup = /^left in (.+)$/.exec(restored?.kept[0]?.reason ?? "")?.[1] ?? "";
    expect(fs.readFileSync(path.join(path.dirname(root), backup, "f"), "utf8")).toBe("their f, large");
    // Nobody touches it again.
    await session.close();
    await (await rig.resumeSession(id)).close();
    expect(fs.existsSync(path.join(path.dirname(root), backup, "f"))).toBe(true);
  });

  it("never carries through a link, and keeps what has no place (U10)", async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session", { maxFileBytes: 10 });
    const outside = path.join(place.dir, "outside");
    fs.mkdirSync(outside);
    fs.symlinkSync(outside, path.join(root, "d"));
    await (await rig.resumeSession(id)).close();
    strangers(root, { "d/large": "larger than ten" });
    await using _session = await rig.resumeSession(id);
    expect(fs.readlinkSync(path.join(root, "d"))).toBe(outside);
    expect(fs.readdirSync(outside)).toEqual([]);
    const [restored] = only(await journalOf(await place.storage(), id), "workspace-restored");
    expect(restored?.kept.map((each) => each.path)).toEqual(["d/large"]);
  });

  it("keeps the whole backup when somebody wrote into it after it was captured (U7)", async () => {
    await using place = new Playground();
    const { id, root } = await closed(place, "session");
    strangers(root, { theirs: "captured" });
    const storage = await place.storage();
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      // Between the two renames, where the stranger cannot be written to by the root's name any more.
      if (name !== "rename" || !String(args[0]).endsWith(".staging")) return;
      const backup = fs.readdirSync(path.dirname(root)).find((each) => each.endsWith(".backup")) ?? "";
      fs.writeFileSync(path.join(path.dirname(root), backup, "theirs"), "written later");
    });
    const rig = await rigOn(place, { ...working("session"), storage, world: { fileSystem } });
    await using _session = await rig.resumeSession(id);
    const [restored] = only(await journalOf(storage, id), "workspace-restored");
    expect(restored).toMatchObject({ result: "partly", kept: [{ path: "theirs" }] });
    const backup = fs.readdirSync(path.dirname(root)).find((each) => each.endsWith(".backup")) ?? "";
    expect(fs.readFileSync(path.join(path.dirname(root), backup, "theirs"), "utf8")).toBe("written later");
  });

  it("refuses a stranger that cannot be captured completely, and changes nothing (R7)", async () => {
    await using place = new Playground();
    const { id, root } = await closed(place, "session");
    const theirs = strangers(root, { readable: "r", secret: "s" });
    const { ino } = fs.statSync(root);
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      if (name === "open" && String(args[0]).endsWith("/secret")) {
        throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
      }
    });
    const rig = await rigOn(place, { ...working("session"), world: { fileSystem } });
    await expect(rig.resumeSession(id)).rejects.toMatchObject({
      ...{ code: "workspace_root.changed", details: { state: "replaced" }, cause: { code: "capture.incomplete" } },
    });
    expect([listTree(root), fs.statSync(root).ino]).toEqual([theirs, ino]);
    expect(fs.readdirSync(path.dirname(root)).sort()).toEqual([id, `${id}-aside`]);
    expect(await (await place.storage()).leaser.list("")).toEqual([]);
    // Readable again, it makes way.
    await using session = await (await rigOn(place, working("session"))).resumeSession(id);
    expect(listTree(session.workspace.root)).toEqual({ f: "file 644 1" });
  });

  it("puts the stranger back when the tree cannot take its place, and goes on with the right tree later (U7)", async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session");
    const theirs = strangers(root, { theirs: "!" });
    const { ino } = fs.statSync(root);
    let fails = 0;
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      if (name !== "rename" || !String(args[0]).endsWith(".staging")) return;
      fails++;
      throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
    });
    const failing = await rigOn(place, { ...working("session"), world: { fileSystem } });
    await expect(failing.resumeSession(id)).rejects.toMatchObject({ code: "workspace_root.changed" });
    expect([fails, listTree(root), fs.statSync(root).ino]).toEqual([1, theirs, ino]);
    expect(fs.readdirSync(path.dirname(root)).sort()).toEqual([id, `${id}-aside`]);
    // The newest checkpoint is the stranger's by now. Even where it was taken away meanwhile, it is not what is built.
    fs.rmSync(root, { recursive: true });
    await using session = await rig.resumeSession(id);
    expect(listTree(session.workspace.root)).toEqual({ f: "file 644 1" });
  });

  it('stays the stranger\'s with `root: "adopt"`, on record (R7)', async () => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, "session");
    const theirs = strangers(root, { theirs: "!" });
    const { ino } = fs.statSync(root);
    await using _session = await rig.resumeSession(id, { root: "adopt" });
    expect([listTree(root), fs.statSync(root).ino]).toEqual([theirs, ino]);
    const events = await journalOf(await place.storage(), id);
    expect(only(events, "configuration-adopted")).toMatchObject([{ changes: [{ field: "root.identity" }] }]);
    expect(only(events, "workspace-restored")).toEqual([]);
  });

  it("of a session that never had a checkpoint is empty again, a stranger in its place carried nowhere", async () => {
    await using place = new Playground();
    const rig = await rigOn(place, working("session"));
    const session = await rig.startSession();
    const { root } = session.workspace;
    await session.close();
    strangers(root, { theirs: "!" });
    await using _again = await rig.resumeSession(session.id);
    expect(listTree(root)).toEqual({});
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "workspace-checkpointed").map(({ files }) => files)).toEqual([1, 0, 0]);
  });

  it("of a session that never had a checkpoint is empty again", async () => {
    await using place = new Playground();
    const rig = await rigOn(place, working("session"));
    const session = await rig.startSession();
    const { root } = session.workspace;
    await session.close();
    fs.rmdirSync(root);
    await using again = await rig.resumeSession(session.id);
    expect(listTree(root)).toEqual({});
    expect(again.workspace.root).toBe(root);
  });
});

describe.each(["exclusive", "session", "shared"] as const)("R7: a %s root in whose place stands", (placement) => {
  it.each<[string, (root: string) => void]>([
    ["a file", (root) => fs.writeFileSync(root, "a file")],
    ["a link to nothing", (root) => fs.symlinkSync("nothing", root)],
  ])("%s is refused on resume, and left as it is", async (_what, put) => {
    await using place = new Playground();
    const { rig, id, root } = await closed(place, placement);
    fs.renameSync(root, `${root}-aside`);
    put(root);
    const before = fs.lstatSync(root);
    for (const options of [{}, { root: "recreate" } as const, { root: "adopt" } as const]) {
      await expect(rig.resumeSession(id, options)).rejects.toMatchObject({
        ...{ code: "workspace_root.changed", details: { root, state: "replaced" } },
      });
    }
    expect(fs.lstatSync(root)).toEqual(before);
  });
});

describe("R7: a fixed root that is not the recorded one, on resume", () => {
  describe.each(["exclusive", "shared"] as const)("%s", (placement) => {
    it("missing, it is refused and never made again silently", async () => {
      await using place = new Playground();
      const { rig, id, root } = await closed(place, placement);
      fs.rmSync(root, { recursive: true });
      await expect(rig.resumeSession(id)).rejects.toMatchObject({
        code: "workspace_root.changed",
        details: { state: "missing" },
      });
      await expect(rig.resumeSession(id, { root: "adopt" })).rejects.toMatchObject({ code: "workspace_root.changed" });
      expect(fs.existsSync(root)).toBe(false);
    });

    it("missing, `recreate` builds it anew from the newest checkpoint, on record", async () => {
      await using place = new Playground();
      const { rig, id, root } = await closed(place, placement);
      fs.rmSync(root, { recursive: true });
      await using session = await rig.resumeSession(id, { root: "recreate" });
      expect(place.read("f")).toBe("1");
      expect(only(await journalOf(await place.storage(), id), "workspace-restored")).toHaveLength(1);
      expect(await (await session.submit("go on")).done).toMatchObject({ status: "done" });
    });

    it("replaced, it is refused; `adopt` takes what is there, on record; `recreate` writes over nothing", async () => {
      await using place = new Playground();
      const { rig, id, root } = await closed(place, placement);
      fs.renameSync(root, `${root}-aside`);
      fs.mkdirSync(root);
      fs.writeFileSync(path.join(root, "theirs"), "!");
      for (const options of [{}, { root: "recreate" } as const]) {
        await expect(rig.resumeSession(id, options)).rejects.toMatchObject({
          ...{ code: "workspace_root.changed", details: { state: "replaced" } },
        });
      }
      await using session = await rig.resumeSession(id, { root: "adopt" });
      expect(place.tree()).toEqual({ theirs: "file 644 !" });
      expect(only(await journalOf(await place.storage(), id), "configuration-adopted")).toMatchObject([
        { changes: [{ field: "root.identity" }] },
      ]);
      expect(await (await session.submit("go on")).done).toMatchObject({ status: "done" });
    });

    it("emptied into another directory, `recreate` builds it there", async () => {
      await using place = new Playground();
      const { rig, id, root } = await closed(place, placement);
      fs.renameSync(root, `${root}-aside`);
      fs.mkdirSync(root);
      await using _session = await rig.resumeSession(id, { root: "recreate" });
      expect(place.read("f")).toBe("1");
    });
  });
});

describe("R7: a root that is replaced under a live session", () => {
  const replace = (root: string): void => {
    fs.renameSync(root, `${root}-aside`);
    fs.mkdirSync(root);
    fs.writeFileSync(path.join(root, "theirs"), "!");
  };
  const swap = defineTool({
    name: "Swap",
    description: "Puts another directory in the root's place",
    requires: ["workspace-read"],
    inputSchema: jsonSchema({ type: "object" }),
    execute: (_input, { readWorkspace }) => {
      replace(readWorkspace.root);
      return "swapped";
    },
  });
  const changed = { code: "workspace_root.changed" };

  it.each(["exclusive", "session", "shared"] as const)(
    "%s: turns, checkpoints and undo are refused there",
    async (placement) => {
      await using place = new Playground();
      await using session = await (await rigOn(place, working(placement))).startSession();
      await (
        await session.submit("write")
      ).done;
      const { root } = session.workspace;
      replace(root);
      expect(await (await session.submit("more")).done).toMatchObject({ status: "failed", error: changed });
      await expect(session.workspace.checkpoint()).rejects.toMatchObject(changed);
      await expect(session.workspace.undo()).rejects.toMatchObject(changed);
      expect(listTree(root)).toEqual({ theirs: "file 644 !" });
      // Put back, it goes on.
      fs.renameSync(root, `${root}-other`);
      fs.renameSync(`${root}-aside`, root);
      expect(await (await session.submit("more")).done).toMatchObject({ status: "done" });
    },
  );

  it("in the middle of a turn, no tool commits there and no model is called any more", async () => {
    await using place = new Playground();
    const steps = [
      { calls: [{ tool: "Swap", input: {} }] },
      { calls: [{ tool: "Write", input: { file_path: "g", content: "x" } }] },
      { text: "Never." },
    ];
    const rig = await rigOn(place, { tools: [swap, fileTools()], steps });
    await using session = await rig.startSession();
    expect(await (await session.submit("go")).done).toMatchObject({ status: "failed", error: changed });
    expect(place.tree()).toEqual({ theirs: "file 644 !" });
    expect(only(await journalOf(await place.storage(), session.id), "turn-failed")).toMatchObject([changed]);
  });

  it("at a required boundary, it is a fault", async () => {
    await using place = new Playground();
    const steps = [{ calls: [{ tool: "Swap", input: {} }] }, { text: "Never." }];
    const snapshots = { trigger: "step-done", priority: "required" };
    await using session = await (await rigOn(place, { tools: [swap], steps, snapshots })).startSession();
    const turn = await session.submit("go");
    expect(await until(session, "session-faulted")).toMatchObject(changed);
    expect(await turn.done).toMatchObject({ status: "failed", error: { code: "session.faulted" } });
  });
});

describe("R5: drift on resume", () => {
  it("breaking rejects, names the field, takes nothing; the caller may accept", async () => {
    await using place = new Playground();
    const { id } = await closed(place, "exclusive");
    const shared = await rigOn(place, working("shared"));
    const head = (await journalOf(await place.storage(), id)).length;
    await expect(shared.resumeSession(id)).rejects.toMatchObject({
      code: "configuration.drift",
      details: { changes: [{ field: "placement.mode", severity: "breaking" }] },
    });
    await expect(shared.resumeSession(id, { onDrift: () => "reject" })).rejects.toMatchObject({
      code: "configuration.drift",
    });
    expect(await journalOf(await place.storage(), id)).toHaveLength(head);
    expect(await (await place.storage()).leaser.list("")).toEqual([]);
    const session = await shared.resumeSession(id, { onDrift: () => "accept" });
    await session.close();
  });

  it("notable is adopted and journaled once; with `onDrift` the caller decides on it too", async () => {
    await using place = new Playground();
    const { id } = await closed(place, "exclusive");
    const other = await rigOn(place, { ...working("exclusive"), snapshots: "turn-done" });
    const seen: (readonly DriftChange[])[] = [];
    await expect(
      other.resumeSession(id, {
        onDrift: ({ changes }) => {
          seen.push(changes);
          return "reject";
        },
      }),
    ).rejects.toMatchObject({ code: "configuration.drift" });
    expect(seen).toMatchObject([[{ field: "snapshots", severity: "notable" }]]);
    for (let i = 0; i < 2; i++) await (await other.resumeSession(id)).close();
    expect(only(await journalOf(await place.storage(), id), "configuration-adopted")).toHaveLength(1);
  });
});

describe("E4: a seed", () => {
  it.each(["memory", "local"])(
    "is materialized, then the session started, then captured, then its loops (%s)",
    async (kind) => {
      await using place = new Playground();
      const storage = kind === "memory" ? createMemoryStorage() : await place.storage();
      place.write({ "src/a": "a" });
      const first = await (await rigOn(place, { storage })).startSession();
      const { ref: seed } = await first.workspace.checkpoint();
      await first.close();
      const rig = await rigOn(place, { storage, placement: "session", steps: [{ text: "One." }] });
      await using session = await rig.startSession({ seed });
      expect(listTree(session.workspace.root)).toEqual(place.tree());
      const events = await journalOf(storage, session.id);
      expect(events.map(({ type }) => type)).toEqual(["session-started", "workspace-checkpointed", "loop-started"]);
      expect(events[1]).toMatchObject({ trigger: "seed", ref: seed });
      expect(await (await session.submit("go")).done).toMatchObject({ status: "done" });
    },
  );

  it("that the store does not have, or a root that is not empty, or a shared one: nothing is begun", async () => {
    await using place = new Playground();
    place.write({ f: "0" });
    const rig = await rigOn(place);
    const first = await rig.startSession();
    const { ref: seed } = await first.workspace.checkpoint();
    await first.close();
    const unknown = `v1:sha256:${"0".repeat(64)}`;
    await expect((await rigOn(place, { placement: "session" })).startSession({ seed: unknown })).rejects.toMatchObject({
      code: "snapshot.unknown",
    });
    await expect(rig.startSession({ seed: "c1" })).rejects.toMatchObject({ code: "ref.invalid" });
    await expect(rig.startSession({ seed })).rejects.toMatchObject({ code: "workspace_seed.not_possible" });
    await expect((await rigOn(place, { placement: "shared" })).startSession({ seed })).rejects.toMatchObject({
      code: "workspace_seed.not_possible",
    });
    expect(await (await place.storage()).leaser.list("")).toEqual([]);
  });
});
