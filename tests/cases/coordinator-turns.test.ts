/** Undo asked of a session by the library while a turn of it runs: what the turn's tools write and what is put back never mix. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { isLooprigError } from "../../src/core/index.js";
import { ManualTimer } from "../../src/loop/testing/manual-timer.js";
import { defineTool } from "../../src/tool/index.js";
import type { ToolDefinition } from "../../src/tool/index.js";
import { Playground } from "../playground.js";
import { Moment, journalOf, only, put, rigOn, wrote } from "../session/scenes.js";
import { stamps } from "./look.js";

/** A tool in the middle of its work, as its test drives it: each `next` is one more attempt to write, until `end`. */
class Dripping {
  readonly tool: ToolDefinition;
  readonly begun = new Moment();
  /** Of the attempts so far: "written", or the code of the error that was in the way. */
  readonly outcomes: string[] = [];
  #wanted: string | undefined;
  #wake = new Moment();
  #tried = new Moment();

  /** Heeds no signal: it goes on for as long as it is told to. */
  constructor(file: string) {
    this.tool = defineTool({
      name: "Drip",
      description: "Writes to a file now and then",
      requires: ["workspace"],
      inputSchema: z.object({}),
      execute: async (_input, { workspace }) => {
        this.begun.reach();
        for (;;) {
          await this.#wake.reached;
          this.#wake = new Moment();
          const text = this.#wanted;
          if (text === undefined) return "dripped";
          try {
            using permit = await workspace.coordinator.acquire({ operation: "path-mutation", paths: [file] });
            permit.assertHeld();
            fs.appendFileSync(`${workspace.root}/${file}`, text);
            this.outcomes.push("written");
          } catch (error) {
            this.outcomes.push(isLooprigError(error) ? error.code : String(error));
          }
          this.#tried.reach();
        }
      },
    });
  }

  async next(text: string): Promise<void> {
    this.#tried = new Moment();
    this.#wanted = text;
    this.#wake.reach();
    await this.#tried.reached;
  }

  end(): void {
    this.#wanted = undefined;
    this.#wake.reach();
  }
}

describe("C030 undo by the library while a tool of a running turn writes now and then", () => {
  const steps = [
    ...[wrote("a.txt", "turn 1\n"), { text: "Done." }],
    ...[{ calls: [{ tool: "Drip", input: {} }] }, { text: "Done." }],
  ];

  /** A session with one turn behind it, in the middle of its second, which has written once. */
  async function inTurn(place: Playground, timer = new ManualTimer()) {
    place.write({ "a.txt": "start\n", "drops.txt": "" });
    const before = place.tree();
    const drip = new Dripping("drops.txt");
    const rig = await rigOn(place, { tools: [put, drip.tool], steps, snapshots: "idle", world: { timer } });
    const session = await rig.startSession();
    await (
      await session.submit("one")
    ).done;
    await session.idle();
    const turn = await session.submit("two");
    await drip.begun.reached;
    await drip.next("1\n");
    return { before, drip, session, turn };
  }

  it("is refused as busy, whoever asks and for whichever turn; nothing is written, and the turn ends as if nobody had asked", async () => {
    await using place = new Playground("root", { quick: true });
    const { before, drip, session, turn } = await inTurn(place);
    const untouched = stamps(place.root);
    const recorded = await journalOf(await place.storage(), session.id);
    const busy = { code: "session.busy", details: { doing: "a turn" } };
    for (const ask of [
      () => session.workspace.undo(),
      () => session.workspace.undo({ turn: "t1" }),
      () => session.workspace.undo({ turn: "t2", includeWindow: true }),
      () => session.workspace.restore("t1^"),
    ]) {
      await expect(ask()).rejects.toMatchObject(busy);
    }
    await expect(place.open()).rejects.toMatchObject({ code: "workspace_root.busy" });
    expect(stamps(place.root)).toEqual(untouched);
    expect(await journalOf(await place.storage(), session.id)).toEqual(recorded);

    await drip.next("2\n");
    expect([place.read("a.txt"), place.read("drops.txt")]).toEqual(["turn 1\n", "1\n2\n"]);
    drip.end();
    expect(await turn.done).toMatchObject({ status: "done", text: "Done." });
    await session.idle();
    expect(drip.outcomes).toEqual(["written", "written"]);

    expect(await session.workspace.undo()).toMatchObject({ entry: "t2", result: "done", written: ["drops.txt"] });
    const last = await session.workspace.undo();
    expect(last).toMatchObject({ entry: "t1", result: "done", written: ["a.txt"] });
    expect(place.tree()).toEqual(before);
    expect((await session.workspace.checkpoint()).ref).toBe(last.checkpoint?.ref);
    await session.close();
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "workspace-restored").map(({ entry, written }) => [entry, written])).toEqual([
      ["t2", ["drops.txt"]],
      ["t1", ["a.txt"]],
    ]);
  });

  it("is done after an interrupt, and from then on no write of a tool that goes on all the same reaches the root", async () => {
    await using place = new Playground("root", { quick: true });
    const timer = new ManualTimer();
    const { before, drip, session, turn } = await inTurn(place, timer);
    const interrupted = session.interrupt({ reason: "enough" });
    await timer.waitsFor(5_000);
    timer.advance(5_000);
    await interrupted;
    expect(await turn.done).toMatchObject({ status: "interrupted", reason: "enough" });
    await session.idle();
    for (const entry of ["t2", "t1"]) {
      expect(await session.workspace.undo({ turn: entry, includeWindow: true })).toMatchObject({
        ...{ entry, result: "done", conflicts: [] },
      });
    }
    expect(place.tree()).toEqual(before);

    const untouched = stamps(place.root);
    const recorded = await journalOf(await place.storage(), session.id);
    for (const late of ["2\n", "3\n"]) await drip.next(late);
    drip.end();
    expect(drip.outcomes).toEqual(["written", "coordinator.revoked", "coordinator.revoked"]);
    expect(stamps(place.root)).toEqual(untouched);
    expect(await journalOf(await place.storage(), session.id)).toEqual(recorded);
    expect((await session.workspace.history()).turns).toMatchObject([
      { number: 1, undone: "undone" },
      { number: 2, state: "interrupted", undone: "undone" },
    ]);
    await session.close();
  });
});
