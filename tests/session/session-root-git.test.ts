/** A repository in a root that is the session's own: captured with it, since nobody else has it (U12). */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { git, gitEnv, gitStatus } from "../cases/git.js";
import { stamps } from "../cases/look.js";
import { Playground, listTree } from "../playground.js";

const work = "git init -q -b main . && echo 1 > f && git add f && git commit -qm one && echo 2 > f && echo 3 > g";

it("is captured, comes back with a root that is gone, and no undo in place writes to it (U12)", async () => {
  await using place = new Playground();
  const baseDir = path.join(place.dir, "sessions");
  const env = Object.entries(gitEnv).map(([name, value]) => `${name}=${value}`);
  const rig = rigDefiner(() => ({}))({
    storage: await place.storage(),
    loops: [
      defineLoop({
        name: "agent",
        model: scriptedModel([
          { calls: [{ tool: "Bash", input: { command: `export ${env.join(" ")}; ${work}` } }] },
          { text: "Committed." },
          { calls: [{ tool: "Bash", input: { command: `export ${env.join(" ")}; git commit -qam two` } }] },
          { text: "Again." },
        ]),
        tools: [fileTools(), bash({ needsApproval: false })],
      }),
    ],
    sessionWorkspaces: { baseDir },
    snapshots: "idle",
  });
  const session = await rig.startSession();
  const root = path.join(baseDir, session.id);
  expect(await (await session.submit("make a repository")).done).toMatchObject({ status: "done" });
  expect(await (await session.submit("commit")).done).toMatchObject({ status: "done" });
  await session.idle();
  const inGit = stamps(path.join(root, ".git"));
  // Undo of the commit takes nothing back of git's own.
  expect((await session.workspace.undo({ turn: "t2" })).written).toEqual([]);
  expect(stamps(path.join(root, ".git"))).toEqual(inGit);
  expect(git(root, "log", "--format=%s").trim().split("\n")).toEqual(["two", "one"]);

  const before = listTree(root);
  const status = gitStatus(root);
  await session.close();
  fs.rmSync(root, { recursive: true });
  const resumed = await rig.resumeSession(session.id);
  expect(listTree(root)).toEqual(before);
  expect(gitStatus(root)).toBe(status);
  execFileSync("git", ["fsck", "--strict"], { cwd: root, stdio: "pipe" });
  await resumed.close();
});
