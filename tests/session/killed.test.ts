/**
 * SIGKILL of a process with a session at work: at named points, and right before effects on the file system, every
 * fortieth here and each one under `LOOPRIG_SOAK=1`. Whoever resumes the session finds no lease, a turn that is settled or
 * goes on, and can take back what it did.
 */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { createSessionStore } from "../../src/session-store/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import type { Storage } from "../../src/storage/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";
import { careful, journalOf, only, put, rigOn } from "./scenes.js";

const stride = process.env["LOOPRIG_SOAK"] === "1" ? 1 : 40;
const program = "tests/processes/killed-session.ts";

async function resumer(place: Playground, storage: Storage) {
  const snapshots = { trigger: "turn-done", priority: "required" };
  return rigOn(place, { storage, tools: [put, careful], snapshots, steps: [{ text: "Gone on." }, { text: "Again." }] });
}

describe("a session whose process was killed", () => {
  it.each(["baseline", "model", "tool", "boundary"])(
    "K5: at its %s is settled by the resume, and what it did can be undone",
    async (point) => {
      await using place = new Playground();
      place.write({ f: "0" });
      const before = place.tree();
      const child = startProcess(program, [place.root, place.stateDir, point]);
      const { id } = JSON.parse(await child.line()) as { id: string };
      child.kill("SIGKILL");
      await child.ended;
      const left = place.tree();

      const storage = await place.storage();
      expect(await storage.leaser.list("")).toEqual([]);
      await using session = await (await resumer(place, storage)).resumeSession(id);
      expect(place.tree()).toEqual(left);
      const [turn] = (await session.workspace.history()).turns;
      expect(turn).toMatchObject({ number: 1, state: point === "boundary" ? "done" : "interrupted" });
      const events = await journalOf(storage, id);
      // A ref that is on record is whole (K3).
      for (const { ref } of only(events, "workspace-checkpointed")) await session.workspace.tree(ref);
      if (point !== "baseline") {
        expect((await session.workspace.undo({ includeWindow: true })).result).toBe("done");
        expect(place.tree()).toEqual(before);
      }
      expect(await (await session.submit("go on")).done).toMatchObject({ status: "done", text: "Gone on." });
    },
  );

  it("T5: while it waits for an answer goes on when that is given", async () => {
    await using place = new Playground();
    place.write({ f: "0" });
    const child = startProcess(program, [place.root, place.stateDir, "gate"]);
    const { id } = JSON.parse(await child.line()) as { id: string };
    child.kill("SIGKILL");
    await child.ended;
    const storage = await place.storage();
    await using session = await (await resumer(place, storage)).resumeSession(id);
    const [gate] = only(await journalOf(storage, id), "gate-opened");
    await session.respond(gate?.gateId ?? "", { approve: true });
    await session.idle();
    expect(only(await journalOf(storage, id), "tool-done").at(-1)).toMatchObject({ outcome: "ok", text: "did it" });
    expect((await session.workspace.history()).turns).toMatchObject([{ state: "done", changed: 1 }]);
    expect((await session.workspace.undo({ includeWindow: true })).result).toBe("done");
    expect(place.read("f")).toBe("0");
  });

  it(
    "anywhere leaves a journal, a store and a tree from which the next one goes on",
    { timeout: 900_000 },
    async () => {
      await using place = new Playground();
      place.write({ f: "0" });
      await (await place.storage()).close();
      const old = place.tree();
      const pristine = path.join(place.dir, "pristine");
      fs.renameSync(place.root, pristine);
      const reset = (name: string): string => {
        const state = path.join(place.dir, `state-${name}`);
        if (fs.existsSync(place.root)) fs.renameSync(place.root, path.join(place.dir, `after-${name}`));
        fs.cpSync(pristine, place.root, { recursive: true });
        fs.cpSync(place.stateDir, state, { recursive: true });
        return state;
      };
      const whole = startProcess(program, [place.root, reset("whole"), "none", "0"]);
      const ended = await whole.ended;
      expect(ended.stderr).toBe("");
      const effects = Number(ended.lines.at(-1));
      expect(effects).toBeGreaterThan(50);
      const done = place.tree();

      let resumed = 0;
      for (let last = 1; last <= effects; last += stride) {
        const state = reset(String(last));
        const { signal } = await startProcess(program, [place.root, state, "none", String(last)]).ended;
        if (signal !== "SIGKILL") {
          // How many effects there are differs from run to run with its timing; this one came to its end.
          expect(last, `effect ${last} of ${effects}`).toBeGreaterThan(effects / 2);
          break;
        }
        await using storage = await openLocalStorage({ dir: state });
        expect(await storage.leaser.list(""), `effect ${last}`).toEqual([]);
        const left = listTree(place.root);
        const [summary] = await createSessionStore(storage).list();
        const rig = await resumer(place, storage);
        // Killed before it was on record, there is no session, and a new one begins.
        const session =
          summary === undefined
            ? await rig.startSession({ root: "adopt" })
            : await rig.resumeSession(summary.id, { root: "adopt" });
        if (summary !== undefined) resumed++;
        expect(listTree(place.root), `effect ${last}`).toEqual(left);
        const { turns, damaged } = await session.workspace.history();
        expect(damaged).toEqual([]);
        for (const turn of turns) expect(["done", "interrupted"], `effect ${last}`).toContain(turn.state);
        if (JSON.stringify(left) !== JSON.stringify(old)) {
          expect((await session.workspace.undo({ includeWindow: true })).result, `effect ${last}`).toBe("done");
          expect(listTree(place.root), `effect ${last}`).toEqual(old);
        }
        expect(await (await session.submit("go on")).done).toMatchObject({ status: "done", text: "Gone on." });
        await session.close();
      }
      expect(resumed).toBeGreaterThan(0);
      expect(done).not.toEqual(old);
    },
  );
});
