/**
 * SIGKILL at effects of a resume that puts the session's tree in a stranger's place (P1, U7), in real processes: whoever goes
 * on next has the session's tree, nothing of ours is left beside the root, and every byte of the stranger is in the store or
 * was carried over. Quick: around each step of the exchange; `LOOPRIG_SOAK=1` at each effect.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";
import type { TestProcess } from "../processes.js";
import { journalOf, omitting, only, rigOn, wrote } from "./scenes.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";

it(
  "a resume killed anywhere in the exchange of a stranger's directory is completed by the next",
  { timeout: 1_200_000 },
  async () => {
    await using place = new Playground();
    const sessions = path.join(place.dir, "sessions");
    const scene = { placement: "session", capture: omitting } as const;
    const first = await (
      await rigOn(place, { ...scene, steps: [wrote("f", "ours"), { text: "Done." }] })
    ).startSession();
    expect(await (await first.submit("write")).done).toMatchObject({ status: "done" });
    await first.workspace.checkpoint();
    const { id } = first;
    const { root } = first.workspace;
    await first.close();
    await (await place.storage()).close();
    const ours = listTree(root);
    expect(ours).toEqual({ f: "file 644 ours" });

    fs.rmSync(root, { recursive: true });
    place.write(
      { f: "theirs", "deep/g": "theirs too", "deep/large": "larger than ten", "cache/a/b": "no capture" },
      root,
    );
    execFileSync("mkfifo", [path.join(root, "pipe")]);
    const theirs = listTree(root);
    const carried = { "deep/large": "file 644 larger than ten", pipe: "special", "cache/a/b": "file 644 no capture" };
    const pristine = path.join(place.dir, "pristine");
    fs.renameSync(sessions, pristine);

    const run = async (number: number, pattern = "") => {
      const state = fs.mkdtempSync(path.join(place.dir, "state-"));
      fs.rmSync(sessions, { recursive: true, force: true });
      execFileSync("cp", ["-a", pristine, sessions]);
      fs.cpSync(place.stateDir, state, { recursive: true });
      const args = [place.dir, state, id, String(number), pattern];
      return { state, ended: await startProcess("tests/processes/resumed-stranger.ts", args).ended };
    };
    const points = soak ? await everyEffect(() => run(0)) : steps(id);
    const seen = new Set<string>();
    for (const [number, pattern] of points) {
      const { state, ended } = await run(number, pattern);
      const at = `effect ${number} ${pattern ?? `of ${points.length}`}`;
      // Runs differ by some effects: files that were just copied are read more often.
      if (soak && ended.signal === null && number > points.length * 0.8) break;
      expect(ended.signal, at).toBe("SIGKILL");
      seen.add(stateOf(sessions, id));
      {
        await using storage = await openLocalStorage({ dir: state });
        await using session = await (await rigOn(place, { ...scene, storage })).resumeSession(id);
        expect(listTree(root), at).toEqual({ ...listTree(root), ...ours, ...carried });
        expect(Object.keys(listTree(root)).sort(), at).toEqual([
          "cache",
          "cache/a",
          "cache/a/b",
          "deep",
          "deep/large",
          "f",
          "pipe",
        ]);
        expect(fs.readdirSync(sessions), at).toEqual([id]);
        const restored = only(await journalOf(storage, id), "workspace-restored");
        expect(restored, at).toMatchObject([{ action: "restore", result: "done", kept: [] }]);
        await session.workspace.restore(restored[0]?.from ?? "");
        expect(listTree(root), at).toEqual(theirs);
      }
      fs.rmSync(state, { recursive: true });
    }
    expect([...seen].sort()).toEqual(["between", "built", "built, backup", "stranger", "stranger, staging"]);
  },
);

type Point = readonly [number: number, pattern?: string];

/** Before the effect that fits, or so many after it. */
const steps = (id: string): readonly Point[] => [
  [0, "^mkdir .*\\.staging$"],
  [0, `^rename ${id}$`],
  [0, "^rename .*\\.staging$"],
  [0, "^rename cache$"],
  [0, "^unlink large$"],
  [1, "^unlink g$"],
  [1, "^rmdir .*\\.backup$"],
];

async function everyEffect(
  run: () => Promise<{ readonly ended: Awaited<TestProcess["ended"]> }>,
): Promise<readonly Point[]> {
  const { ended } = await run();
  expect(ended.stderr).toBe("");
  return Array.from({ length: Number(ended.lines[0]) }, (_, index) => [index + 1]);
}

function stateOf(sessions: string, id: string): string {
  const names = fs.readdirSync(sessions);
  const has = (end: string): boolean => names.some((name) => name.endsWith(end));
  if (!names.includes(id)) return "between";
  const theirs = fs.existsSync(path.join(sessions, id, "deep/g"));
  if (theirs) return has(".staging") ? "stranger, staging" : "stranger";
  return has(".backup") ? "built, backup" : "built";
}
