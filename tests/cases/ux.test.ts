/** What people are told, and what works without anything else installed. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { Playground } from "../playground.js";
import { looprig } from "./command-line.js";
import { commitAll } from "./git.js";
import { isGit, only } from "./look.js";

describe("C045 a plain directory on a machine without git", () => {
  /** A PATH on which nothing is found but what the commands here need. */
  function barePath(place: Playground): string {
    const bin = path.join(place.dir, "bin");
    fs.mkdirSync(bin);
    for (const tool of ["sh", "sed", "rm", "mkdir"]) {
      fs.symlinkSync(
        execFileSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim(),
        path.join(bin, tool),
      );
    }
    return bin;
  }
  const files = { "src/a.txt": "a\n", "src/b.txt": "b\n", "gone/c.txt": "c\n" };
  const script = "sed -i s/a/A/ src/a.txt; rm -r gone; mkdir new; echo d > new/d.txt";

  /** Captures, edits, deletes and undoes by command line, and returns all that was said, without what differs by run. */
  async function replay(place: Playground, env: NodeJS.ProcessEnv): Promise<unknown> {
    const before = only(place.tree(), (name) => !isGit(name));
    const run = (...args: readonly string[]) => looprig(place, args, { env });
    const turn = await run("exec", "--", "sh", "-c", script);
    const undone = await run("undo", "--yes", "--json");
    expect([turn, undone]).toMatchObject([{ code: 0 }, { code: 0 }]);
    expect(only(place.tree(), (name) => !isGit(name))).toEqual(before);
    const { result, written, deleted, kept, conflicts } = JSON.parse(undone.stdout) as Record<string, unknown>;
    return { result, written, deleted, kept, conflicts };
  }

  it("is protected just as a git repository is, and nothing is said about git", async () => {
    await using plain = new Playground();
    plain.write(files);
    const PATH = barePath(plain);
    expect(fs.readdirSync(PATH)).not.toContain("git");
    const without = await replay(plain, { PATH });
    expect(without).toEqual({
      result: "done",
      written: ["gone", "gone/c.txt", "src/a.txt"],
      deleted: ["new", "new/d.txt"],
      kept: [],
      conflicts: [],
    });

    await using repository = new Playground();
    repository.write(files);
    commitAll(repository.root, "first");
    expect(await replay(repository, {})).toEqual(without);
  });

  it("is protected through the library too, with an empty PATH for looprig itself", async () => {
    await using place = new Playground();
    place.write(files);
    const before = place.tree();
    const sh = execFileSync("sh", ["-c", "command -v sh"], { encoding: "utf8" }).trim();
    const workspace = await place.open();
    const PATH = process.env["PATH"];
    process.env["PATH"] = "";
    try {
      const { ref } = await workspace.checkpoint();
      await workspace.exec([sh, "-c", script], { stdio: "ignore", ...(PATH === undefined ? {} : { env: { PATH } }) });
      expect(place.tree()).not.toEqual(before);
      expect(await workspace.undo()).toMatchObject({ result: "done" });
      expect(place.tree()).toEqual(before);
      expect((await workspace.checkpoint()).ref).toBe(ref);
    } finally {
      process.env["PATH"] = PATH;
    }
    await workspace.close();
  });
});
