/** One root, many processes: killed ones leave nothing in the way, live ones are not robbed, all that is said to be taken is. */
import { describe, expect, it } from "vitest";
import { parseRef } from "../../src/core/index.js";
import { Playground } from "../playground.js";
import { looprig } from "./command-line.js";
import { ok, refusal, startSession } from "./session.js";
import type { StopAt } from "./workspace-process.js";

const files = (n: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`src/file-${i}.txt`, `file ${i}\n`]));

describe("C036 (a) a process killed in the middle of a capture", () => {
  it.each<StopAt>([
    { seam: "workspace", call: "read" },
    { seam: "storage", call: "write" },
    { seam: "storage", call: "link" },
    { seam: "storage", call: "fsyncLater" },
  ])("at $seam $call leaves nothing to remove by hand: the next process captures", async (stopAt) => {
    await using place = new Playground();
    place.write(files(5));
    const killed = await startSession(place);
    ok(killed.opened);
    ok(await killed.tell({ do: "checkpoint" }));
    place.write({ "src/file-1.txt": "changed\n", "src/more.txt": "more\n" });
    await killed.tellAndStop({ do: "checkpoint", stopAt });
    killed.process.kill("SIGKILL");
    expect((await killed.process.ended).signal).toBe("SIGKILL");

    const next = await startSession(place);
    ok(next.opened);
    const taken = ok(await next.tell({ do: "checkpoint" }));
    expect(taken).toMatchObject({ completeness: "complete", files: 6 });
    parseRef(String(taken["ref"]));
    await using view = await place.view();
    expect(await (await view.tree(String(taken["ref"]))).lookup("src/more.txt" as never)).toMatchObject({ size: 5 });
    ok(await next.tell({ do: "close" }));
  });
});

describe("C036 (b) eight processes capturing a shared root at once", () => {
  it("get a valid ref for every one of their checkpoints, each numbered once", async () => {
    await using place = new Playground();
    place.write(files(20));
    // The store exists before they race for it.
    await place.storage();
    const sessions = await Promise.all(
      Array.from({ length: 8 }, (_, i) => startSession(place, { shared: true, command: `process ${i}` })),
    );
    for (const { opened } of sessions) ok(opened);
    const numbers: unknown[] = [];
    for (let round = 0; round < 8; round++) {
      place.write({ "src/round.txt": `${round}\n` });
      const taken = await Promise.all(sessions.map((session) => session.tell({ do: "checkpoint" })));
      for (const answer of taken) {
        const { ref, number, completeness } = ok(answer);
        parseRef(String(ref));
        expect(completeness).toBe("complete");
        numbers.push(number);
      }
      expect(new Set(taken.map((answer) => ok(answer)["ref"])).size).toBe(1);
    }
    expect(numbers).toHaveLength(64);
    expect(new Set(numbers).size).toBe(64);
    for (const session of sessions) ok(await session.tell({ do: "close" }));
    await using view = await place.view();
    const { checkpoints } = await view.history();
    expect(checkpoints.map(({ number }) => number)).toEqual(Array.from({ length: 64 }, (_, i) => i + 1));
    // Each is one that can be read back.
    for (const ref of new Set(checkpoints.map((checkpoint) => checkpoint.ref))) {
      expect(await (await view.tree(ref)).list("src" as never)).toHaveLength(21);
    }
  });
});

describe("C036 (c) a holder that lives and is slow", () => {
  it("is not robbed while it stands still in its capture: others are told who holds the root, and it finishes", async () => {
    await using place = new Playground();
    place.write(files(5));
    const holder = await startSession(place, { command: "the slow one" });
    const { sessionId } = ok(holder.opened);
    await holder.tellAndStop({ do: "checkpoint", stopAt: { seam: "workspace", call: "read" } });

    const other = await startSession(place);
    expect(refusal(other.opened)).toMatchObject({
      code: "workspace_root.busy",
      details: { relation: "same", holder: { sessionId, pid: holder.process.pid, command: "the slow one" } },
    });
    const told = await looprig(place, ["snapshot", "--json"]);
    expect(told).toMatchObject({ code: 5 });
    expect(JSON.parse(told.stdout)).toMatchObject({ code: "workspace_root.busy", details: { holder: { sessionId } } });

    const taken = ok(await holder.goOn());
    expect(taken).toMatchObject({ completeness: "complete", files: 5 });
    // Still its own: it goes on, and only when it is done is the root free.
    ok(await holder.tell({ do: "exec", script: "echo more > src/more.txt" }));
    ok(await holder.tell({ do: "close" }));
    const after = await startSession(place);
    ok(after.opened);
    expect(ok(await after.tell({ do: "checkpoint" }))).toMatchObject({ files: 6 });
    ok(await after.tell({ do: "close" }));
  });
});
