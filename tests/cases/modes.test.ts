/** Permission bits come back with the files, in place and elsewhere, and set-id bits never do. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { Playground, listTree } from "../playground.js";
import { agentRig, call, play } from "./agent.js";
import { looprig } from "./command-line.js";
import { commitAll, git, gitStatus } from "./git.js";
import { isGit, only } from "./look.js";

describe("C115 a tree with executables, read-only files, a set-id file and a closed directory", () => {
  const scripts = Array.from({ length: 57 }, (_, i) => `bin/run-${i}.sh`);
  const readOnly = scripts.filter((_, i) => i % 8 === 0);

  function lay(place: Playground): void {
    place.write(Object.fromEntries(scripts.map((name, i) => [name, `#!/bin/sh\necho ${i}\n`])));
    for (const name of scripts) fs.chmodSync(place.at(name), readOnly.includes(name) ? 0o555 : 0o755);
    place.write({
      "plain.txt": "plain\n",
      "closed/in.txt": "in\n",
      "read-only.txt": "read only\n",
      setuid: "#!/bin/sh\n",
    });
    fs.chmodSync(place.at("read-only.txt"), 0o444);
    fs.chmodSync(place.at("setuid"), 0o755);
    commitAll(place.root, "as published");
    fs.chmodSync(place.at("setuid"), 0o4755);
    fs.chmodSync(place.at("closed"), 0o500);
  }
  /** The tree but for git's own, and for the set-id bit, which nothing brings back. */
  const published = (tree: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(only(tree, (name) => !isGit(name))).map(([name, what]) => [
        name,
        what.replace("file 4755", "file 755"),
      ]),
    );
  const modeOf = (file: string): number => fs.lstatSync(file).mode & 0o7777;
  const careless =
    "chmod -R u+rwX . && find . -path ./.git -prune -o -type f -exec chmod 644 {} + && echo edited > bin/run-3.sh && rm -r closed bin/run-8.sh";

  it("has every bit again after undo and redo of a turn that stripped them, in place, and git sees no change", async () => {
    await using place = new Playground();
    lay(place);
    const before = published(place.tree());
    const clean = gitStatus(place.root);
    const rig = await agentRig(place, [{ calls: [call("Bash", { command: careless })] }, { text: "Tidied." }]);
    await using session = await rig.startSession();
    expect((await play(session, "tidy up")).answers).toMatchObject([{ outcome: "ok" }]);
    const stripped = place.tree();
    expect(git(place.root, "status", "--porcelain").split("\n").length).toBeGreaterThan(57);

    expect(await session.workspace.undo()).toMatchObject({ result: "done", conflicts: [] });
    expect(published(place.tree())).toEqual(before);
    // Its set-id bit was taken away, and nobody gives it back.
    expect(modeOf(place.at("setuid"))).toBe(0o755);
    expect(modeOf(place.at("closed"))).toBe(0o500);
    expect(gitStatus(place.root)).toBe(clean);
    expect(await session.workspace.redo()).toMatchObject({ result: "done", conflicts: [] });
    expect(only(place.tree(), (name) => !isGit(name))).toEqual(only(stripped, (name) => !isGit(name)));
  });

  it("has every bit in a new root, by library and command line, under any umask", async () => {
    await using place = new Playground();
    lay(place);
    const before = published(place.tree());
    await using workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    const there = path.join(place.dir, "there");
    const umask = process.umask(0o077);
    try {
      await workspace.materialize(ref, there);
    } finally {
      process.umask(umask);
    }
    await workspace.close();
    expect(published(listTree(there))).toEqual(before);
    expect(modeOf(path.join(there, "setuid"))).toBe(0o755);

    const again = path.join(place.dir, "again");
    expect((await looprig(place, ["restore", "c1", "--to", again])).code).toBe(0);
    expect(published(listTree(again))).toEqual(before);
    expect(modeOf(path.join(again, "setuid"))).toBe(0o755);
    // As the published tree: with its own repository it has nothing to commit.
    fs.cpSync(place.at(".git"), path.join(again, ".git"), { recursive: true });
    expect(git(again, "status", "--porcelain")).toBe("");
  });

  it("an edit in place takes no bit away, drops set-id from what it writes, and its undo gives none back", async () => {
    await using place = new Playground();
    lay(place);
    const rig = await agentRig(place, [
      {
        calls: [
          call("Edit", { file_path: "bin/run-3.sh", old_string: "echo 3", new_string: "echo three" }),
          call("Edit", { file_path: "setuid", old_string: "#!/bin/sh", new_string: "#!/bin/sh -e" }),
        ],
      },
      { text: "Edited." },
    ]);
    await using session = await rig.startSession();
    expect((await play(session, "edit")).answers).toMatchObject([{ outcome: "ok" }, { outcome: "ok" }]);
    expect([modeOf(place.at("bin/run-3.sh")), modeOf(place.at("setuid"))]).toEqual([0o755, 0o755]);
    expect(await session.workspace.undo()).toMatchObject({ result: "done", conflicts: [] });
    expect([modeOf(place.at("bin/run-3.sh")), modeOf(place.at("setuid"))]).toEqual([0o755, 0o755]);
    expect(git(place.root, "status", "--porcelain")).toBe("");
  });
});
