/** A restore that was cut short, in a process of its own: it belongs to the root, and to whoever next takes it (U9). */
import { describe, expect, it } from "vitest";
import { ok, refusal, startSession } from "../cases/session.js";
import { looprig } from "../cases/command-line.js";
import { stamps } from "../cases/look.js";
import { Playground } from "../playground.js";

const half = { stopAt: { seam: "workspace", call: "link" } } as const;

/** A turn that changed two files, and its undo standing still in the middle; `meanwhile` happens between the two. */
async function stoppedUndo(place: Playground, shared: boolean, meanwhile: () => Promise<void> = async () => undefined) {
  place.write({ a: "0", b: "0", ".looprig-mine-1": "a file of the user's that only looks like ours" });
  const first = await startSession(place, { shared, command: "first" });
  ok(first.opened);
  ok(await first.tell({ do: "exec", script: "printf 1 > a; printf 1 > b" }));
  await meanwhile();
  await first.tellAndStop({ do: "undo", turn: "t1", includeWindow: true, ...half });
  return first;
}

describe("a restore whose process is killed in the middle", () => {
  it("is reported by whoever reads, who writes nothing; its temporaries are listed nowhere, others of such a name are (U9)", async () => {
    await using place = new Playground();
    const first = await stoppedUndo(place, false);
    first.process.kill("SIGKILL");
    await first.process.ended;
    const left = stamps(place.root);
    expect(Object.keys(left).filter((name) => name.startsWith(".looprig-")).length).toBeGreaterThan(1);

    await using view = await place.view();
    expect(await view.unsettled()).toMatchObject({ action: "undo" });
    const listed: string[] = [];
    for (const { path } of await view.changes({ since: "t1^" })) listed.push(path);
    expect(listed.filter((name) => name.startsWith(".looprig-"))).toEqual([]);
    const status = await looprig(place, ["status"]);
    expect(status.code).toBe(0);
    expect(status.stdout).toMatch(/undo/);
    expect(stamps(place.root)).toEqual(left);

    // Whoever takes the root for writing settles it before anything else, wholly one way or the other.
    await using next = await place.open();
    expect(await next.unsettled()).toBeUndefined();
    expect(Object.keys(place.tree()).sort()).toEqual([".looprig-mine-1", "a", "b"]);
    expect(["0 0", "1 1"]).toContain(`${place.read("a")} ${place.read("b")}`);
    expect(place.read(".looprig-mine-1")).toContain("the user's");
  });
});

describe("a restore in a shared root", () => {
  it("whose process stands still is left to it: others may read, and restore only when it is through (U9, C10)", async () => {
    await using place = new Playground();
    let joining: ReturnType<typeof startSession> | undefined;
    const first = await stoppedUndo(place, true, async () => {
      joining = startSession(place, { shared: true, command: "second" });
      ok((await joining).opened);
    });
    const second = await (joining as unknown as ReturnType<typeof startSession>);
    const left = place.tree();
    await using view = await place.view();
    expect(await view.unsettled()).toMatchObject({ action: "undo" });
    const refused = refusal(await second.tell({ do: "restore", ref: "c1", exact: true, includeWindow: true }));
    expect(refused.code).toBe("lease.held");
    expect(place.tree()).toEqual(left);

    expect(ok(await first.goOn())).toMatchObject({ result: "done", written: ["a", "b"] });
    expect([place.read("a"), place.read("b")]).toEqual(["0", "0"]);
    expect(ok(await second.tell({ do: "redo", includeWindow: true }))).toMatchObject({ result: "done" });
    expect([place.read("a"), place.read("b")]).toEqual(["1", "1"]);
    ok(await first.tell({ do: "close" }));
    ok(await second.tell({ do: "close" }));
  });

  it("whose process is killed is settled by the next session, whole (U9)", async () => {
    await using place = new Playground();
    const first = await stoppedUndo(place, true);
    first.process.kill("SIGKILL");
    await first.process.ended;
    const next = await startSession(place, { shared: true, command: "next" });
    ok(next.opened);
    expect(["0 0", "1 1"]).toContain(`${place.read("a")} ${place.read("b")}`);
    expect(Object.keys(place.tree()).sort()).toEqual([".looprig-mine-1", "a", "b"]);
    ok(await next.tell({ do: "close" }));
  });
});
