/** What a loop saw of a file, and what it may therefore write: the cases of that area, with the tools a model is given. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { ToolsOnDisk } from "../../src/builtin-tools/testing/tools-on-disk.js";
import type { LoopTools } from "../../src/builtin-tools/testing/tools-on-disk.js";
import { createCoordinator } from "../../src/workspace/index.js";
import { folding } from "../../src/workspace/restore/testing/other-systems.js";
import { startProcess } from "../processes.js";

/** Two sessions that know nothing of each other, over one root. */
async function twoSessions(disk: ToolsOnDisk): Promise<readonly [LoopTools, LoopTools]> {
  return [await disk.loop(), await disk.loop(createCoordinator({ root: disk.root }))];
}

describe("C024 a whole-file write composed from an old read", () => {
  it("is refused as stale and shows what the other session wrote; that line remains", async () => {
    using disk = new ToolsOnDisk();
    disk.write("notes.md", "one\ntwo\nthree\n");
    const [a, b] = await twoSessions(disk);
    await a.ok("Read", { file_path: "notes.md" });
    await b.ok("Edit", { file_path: "notes.md", old_string: "three\n", new_string: "three\nfour, of B\n" });
    const refused = await a.refusal("Write", { file_path: "notes.md", content: "ONE\ntwo\nthree\n" });
    expect(refused.code).toBe("file.stale");
    expect(refused.text).toContain("+four, of B");
    expect(disk.read("notes.md")).toBe("one\ntwo\nthree\nfour, of B\n");
    // Having been shown B's line, A can take it into account with one more call.
    await a.ok("Write", { file_path: "notes.md", content: "ONE\ntwo\nthree\nfour, of B\n" });
    expect(disk.read("notes.md")).toBe("ONE\ntwo\nthree\nfour, of B\n");
  });

  it("as a targeted replace on another line succeeds, and both changes are present", async () => {
    using disk = new ToolsOnDisk();
    disk.write("notes.md", "one\ntwo\nthree\n");
    const [a, b] = await twoSessions(disk);
    await a.ok("Read", { file_path: "notes.md" });
    await b.ok("Edit", { file_path: "notes.md", old_string: "three\n", new_string: "three\nfour, of B\n" });
    const told = await a.ok("Edit", { file_path: "notes.md", old_string: "one", new_string: "ONE" });
    expect(told).toContain("+four, of B");
    expect(disk.read("notes.md")).toBe("ONE\ntwo\nthree\nfour, of B\n");
  });

  it("loses no line in 1000 rounds of two sessions that write at once", async () => {
    using disk = new ToolsOnDisk();
    const [a, b] = await twoSessions(disk);
    const other = await disk.loop(createCoordinator({ root: disk.root }));
    const append = async (loop: LoopTools, line: string): Promise<void> => {
      for (;;) {
        const seen = await loop.ok("Read", { file_path: "log" });
        // Composed from what it was shown, however old that is by now.
        const content = `${seen.replaceAll(/^ +\d+\t/gm, "")}\n${line}\n`;
        try {
          if (!(await loop.call("Write", { file_path: "log", content })).isError) return;
        } catch (error) {
          expect(error).toMatchObject({ code: "file.stale" });
        }
      }
    };
    for (let round = 0; round < 1000; round++) {
      fs.writeFileSync(disk.at("log"), "begin\n");
      await Promise.all([
        append(a, `a ${round}`),
        append(b, `b ${round}`),
        other.ok("Edit", { file_path: "log", old_string: "begin", new_string: "BEGIN" }),
      ]);
      expect(disk.read("log").split("\n").sort()).toEqual(["", "BEGIN", `a ${round}`, `b ${round}`]);
    }
  });
});

it("C070 edits follow each other as fast as they can, whatever time stamps say, and none is refused", async () => {
  using disk = new ToolsOnDisk();
  disk.write("package.json", '{ "version": 0, "other": 0 }\n');
  const loop = await disk.loop();
  await loop.ok("Read", { file_path: "package.json" });
  const edit = (name: string, from: number): Promise<string> =>
    loop.ok("Edit", {
      file_path: "package.json",
      old_string: `"${name}": ${from}`,
      new_string: `"${name}": ${from + 1}`,
    });
  for (let round = 0; round < 1000; round++) {
    await edit("version", round);
    // As of a file system that rounds, lags, or runs ahead.
    const stamp = [0, 1_000_000_000, 4_000_000_000][round % 3] ?? 0;
    fs.utimesSync(disk.at("package.json"), stamp, stamp);
    const text = await edit("other", round);
    expect(text).not.toContain("not as it was last seen");
  }
  expect(disk.read("package.json")).toBe('{ "version": 1000, "other": 1000 }\n');
  await loop.ok("Write", { file_path: "package.json", content: "{}\n" });
});

it("C071 an edit or a write right after a read is accepted through every spelling of the path", async () => {
  using disk = new ToolsOnDisk();
  fs.mkdirSync(disk.at("dir"));
  fs.symlinkSync("../f.txt", disk.at("dir/alias"));
  fs.symlinkSync(disk.root, `${disk.dir}/link`);
  const spellings = [
    "f.txt",
    "./f.txt",
    "dir/../f.txt",
    "dir//alias",
    disk.at("f.txt"),
    `${disk.root}//dir/../f.txt`,
    `${disk.dir}/link/f.txt`,
  ];
  for (const readAs of spellings) {
    for (const editAs of spellings) {
      disk.write("f.txt", "one\ntwo\n");
      const loop = await disk.loop();
      await loop.ok("Read", { file_path: readAs });
      // Reading it changes its access time.
      fs.utimesSync(disk.at("f.txt"), new Date(), fs.statSync(disk.at("f.txt")).mtime);
      await loop.ok("Edit", { file_path: editAs, old_string: "one", new_string: "1" });
      await loop.ok("Write", { file_path: readAs, content: "all\n" });
      expect(disk.read("f.txt")).toBe("all\n");
    }
  }
  expect(fs.lstatSync(disk.at("dir/alias")).isSymbolicLink()).toBe(true);
});

it("C071 on a volume that folds case or composition an edit or a write is accepted through another spelling of what was read", async () => {
  using disk = new ToolsOnDisk();
  const fold = (name: string): string => name.normalize("NFC").toLowerCase();
  const spellings = ["Dir/Caf\u00e9.txt", "dir/caf\u00e9.TXT", "DIR/Cafe\u0301.txt", "./dIr//CAFE\u0301.txt"];
  for (const readAs of spellings) {
    for (const editAs of spellings) {
      disk.write("Dir/Caf\u00e9.txt", "one\ntwo\n");
      const loop = await disk.foldingLoop(folding(), fold);
      await loop.ok("Read", { file_path: readAs });
      await loop.ok("Edit", { file_path: editAs, old_string: "one", new_string: "1" });
      await loop.ok("Write", { file_path: readAs, content: "all\n" });
      expect(disk.read("Dir/Caf\u00e9.txt")).toBe("all\n");
      expect(fs.readdirSync(disk.at("Dir"))).toEqual(["Caf\u00e9.txt"]);
    }
  }
  expect(fs.readdirSync(disk.root)).toEqual(["Dir"]);
});

describe("C073 a formatter rewrites the file after each edit", () => {
  it("and the next edit applies where its region is unaffected", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f.js", "const a=1\nconst b=2\nconst c=3\n");
    const loop = await disk.loop();
    await loop.ok("Read", { file_path: "f.js" });
    await loop.ok("Edit", { file_path: "f.js", old_string: "a=1", new_string: "a=10" });
    disk.write("f.js", disk.read("f.js").replace("const a=10", "const a = 10;"));
    await loop.ok("Edit", { file_path: "f.js", old_string: "c=3", new_string: "c=30" });
    expect(disk.read("f.js")).toBe("const a = 10;\nconst b=2\nconst c=30\n");
  });

  it("and where it is affected the refusal shows what it did, so that one retry is enough", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f.js", "const a=1\nconst b=2\n");
    const loop = await disk.loop();
    await loop.ok("Read", { file_path: "f.js" });
    await loop.ok("Edit", { file_path: "f.js", old_string: "a=1", new_string: "a=10" });
    disk.write("f.js", "const a = 10;\nconst b = 2;\n");
    const refused = await loop.refusal("Edit", { file_path: "f.js", old_string: "b=2", new_string: "b=20" });
    expect(refused).toMatchObject({ code: "file.no_unique_match" });
    expect(refused.text).toContain("+const b = 2;");
    await loop.ok("Edit", { file_path: "f.js", old_string: "b = 2", new_string: "b = 20" });
    // A real change of somebody else is still caught.
    disk.write("f.js", "theirs\n");
    expect((await loop.refusal("Write", { file_path: "f.js", content: "mine\n" })).code).toBe("file.stale");
    expect(disk.read("f.js")).toBe("theirs\n");
  });
});

describe("C023 two edits to one file in one batch, by the tools", () => {
  const lines = Array.from({ length: 100 }, (_, i) => `line ${i + 1} of 100`);
  const text = (changed: readonly number[] = []): string =>
    lines.map((line, i) => `${changed.includes(i + 1) ? `REPLACED ${i + 1}` : line}\n`).join("");

  it("both arrive, and no reader ever sees a part", async () => {
    using disk = new ToolsOnDisk();
    disk.write("n.txt", text());
    fs.mkdirSync(disk.at("dir"));
    fs.symlinkSync("../n.txt", disk.at("dir/alias.txt"));
    const spellings = ["n.txt", disk.at("n.txt"), "dir/../n.txt", ".//n.txt", "dir/alias.txt"];
    const reader = startProcess("tests/cases/reader-process.ts", [disk.at("n.txt"), "100"]);
    expect(await reader.line()).toBe("reading");
    const loop = await disk.loop();
    for (let round = 0; round < 200; round++) {
      await loop.ok("Read", { file_path: "n.txt" });
      await loop.ok("Write", { file_path: "n.txt", content: text() });
      const edit = (which: number, file_path: string | undefined): Promise<string> =>
        loop.ok("Edit", { file_path, old_string: `line ${which} of 100`, new_string: `REPLACED ${which}` });
      await Promise.all([
        edit(50, spellings[round % spellings.length]),
        edit(75, spellings[Math.floor(round / spellings.length) % spellings.length]),
      ]);
      expect(disk.read("n.txt")).toBe(text([50, 75]));
    }
    reader.say("stop");
    const { reads, partial } = JSON.parse(await reader.line()) as { reads: number; partial: number };
    expect(partial).toBe(0);
    expect(reads).toBeGreaterThan(0);
    await reader.ended;
    expect(fs.readdirSync(disk.root).sort()).toEqual(["dir", "n.txt"]);
  });
});

describe("C095 links that lead outside, by the tools", () => {
  it("nothing is read, made or changed through any of them", async () => {
    using disk = new ToolsOnDisk();
    const outside = `${disk.dir}/outside`;
    fs.mkdirSync(outside);
    fs.writeFileSync(`${outside}/secret`, "secret\n");
    disk.write("real/f", "inside\n");
    fs.symlinkSync(outside, disk.at("outbox"));
    fs.symlinkSync("../outside", disk.at("relative"));
    fs.symlinkSync(`${outside}/none`, disk.at("dangling"));
    fs.symlinkSync("outbox", disk.at("chain"));
    fs.symlinkSync(`${outside}/secret`, disk.at("file"));
    fs.symlinkSync("loop", disk.at("loop"));
    const loop = await disk.loop();
    const paths = ["outbox/secret", "relative/secret", "chain/secret", "file", "outbox/new", "dangling", "loop"];
    for (const file_path of [...paths, "../outside/secret", `${outside}/secret`, "real/../../outside/secret"]) {
      const calls: readonly [string, object][] = [
        ["Read", { file_path }],
        ["Write", { file_path, content: "x" }],
        ["Edit", { file_path, old_string: "secret", new_string: "x" }],
        ["List", { path: file_path }],
        ["Grep", { pattern: "secret", path: file_path }],
      ];
      for (const [tool, input] of calls) {
        expect([tool, file_path, (await loop.refusal(tool, input)).code]).toEqual([tool, file_path, "path.escapes"]);
      }
    }
    expect(fs.readdirSync(outside)).toEqual(["secret"]);
    expect(fs.readFileSync(`${outside}/secret`, "utf8")).toBe("secret\n");
    expect(await loop.ok("Grep", { pattern: "secret" })).toBe('[nothing here fits "secret"]');
  });

  it("a directory that becomes a link while the call waits for its permit is not followed", async () => {
    using disk = new ToolsOnDisk();
    const outside = `${disk.dir}/outside`;
    fs.mkdirSync(outside);
    fs.mkdirSync(disk.at("dir"));
    const loop = await disk.loop();
    const permit = await disk.coordinator.acquire({ operation: "whole-mutation" });
    const call = loop.refusal("Write", { file_path: "dir/new", content: "x" });
    while (disk.coordinator.counts().waiting === 0) await Promise.resolve();
    fs.rmdirSync(disk.at("dir"));
    fs.symlinkSync(outside, disk.at("dir"));
    permit.release();
    expect((await call).code).toMatch(/^(path\.escapes|file\.failed)$/);
    expect(fs.readdirSync(outside)).toEqual([]);
  });
});

it("C102 an edit through a link changes its target: bytes new, mode and owner as before, the link still a link", async () => {
  using disk = new ToolsOnDisk();
  disk.write("dotfiles/zshrc", "old\n");
  fs.chmodSync(disk.at("dotfiles/zshrc"), 0o600);
  fs.symlinkSync("dotfiles/zshrc", disk.at("zshrc"));
  fs.symlinkSync(disk.at("dotfiles/zshrc"), disk.at("absolute"));
  disk.write("run.sh", "old\n");
  fs.chmodSync(disk.at("run.sh"), 0o755);
  // Only root may give files away; anybody else keeps what they had, which is the same to check.
  if (process.getuid?.() === 0) fs.chownSync(disk.at("dotfiles/zshrc"), 1234, 4321);
  const owner = ({ uid, gid }: fs.Stats): readonly number[] => [uid, gid];
  const before = owner(fs.statSync(disk.at("dotfiles/zshrc")));
  const loop = await disk.loop();
  await loop.ok("Edit", { file_path: "zshrc", old_string: "old", new_string: "new" });
  await loop.ok("Edit", { file_path: "absolute", old_string: "new", new_string: "newer" });
  await loop.ok("Edit", { file_path: "run.sh", old_string: "old", new_string: "new" });
  const target = fs.statSync(disk.at("dotfiles/zshrc"));
  expect([disk.read("dotfiles/zshrc"), target.mode & 0o777, owner(target)]).toEqual(["newer\n", 0o600, before]);
  expect(fs.readlinkSync(disk.at("zshrc"))).toBe("dotfiles/zshrc");
  expect(fs.statSync(disk.at("run.sh")).mode & 0o777).toBe(0o755);
});
