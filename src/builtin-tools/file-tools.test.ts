import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ToolsOnDisk } from "./testing/tools-on-disk.js";

const leftovers = (dir: string): string[] => fs.readdirSync(dir).filter((name) => name.startsWith(".looprig-"));

describe("Read", () => {
  it("numbers lines, and says how to go on when it shows a part", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "a\nb\nc\nd\n");
    const loop = await disk.loop();
    expect(await loop.ok("Read", { file_path: "f" })).toBe("     1\ta\n     2\tb\n     3\tc\n     4\td");
    expect(await loop.ok("Read", { file_path: disk.at("f"), offset: 2, limit: 2 })).toBe(
      "     2\tb\n     3\tc\n[lines 2 to 3 of 4; go on with offset 4]",
    );
    expect((await loop.call("Read", { file_path: "f", offset: 9 })).isError).toBe(true);
  });

  it("is bounded for many lines and for long ones, and says so", async () => {
    using disk = new ToolsOnDisk();
    disk.write("many", "x\n".repeat(5_000));
    disk.write("wide", `${"y".repeat(100_000)}\n`);
    disk.write("both", `${"z".repeat(1_900)}\n`.repeat(100));
    const loop = await disk.loop();
    expect(await loop.ok("Read", { file_path: "many" })).toMatch(
      /\[lines 1 to 2000 of 5000; go on with offset 2001\]$/,
    );
    expect(await loop.ok("Read", { file_path: "wide" })).toMatch(/\[98000 more characters of this line\]$/);
    const both = await loop.ok("Read", { file_path: "both", limit: 100 });
    expect(both.length).toBeLessThan(46_000);
    expect(both).toMatch(/go on with offset \d+\]$/);
  });

  it("shows bytes that are no text as such, and lets nobody edit or write over them", async () => {
    using disk = new ToolsOnDisk();
    const bytes = Buffer.from([0xff, 0xfe, 0x41, 0x00, 0x0a]);
    disk.write("f", bytes);
    const loop = await disk.loop();
    expect(await loop.ok("Read", { file_path: "f" })).toMatch(
      /not text in UTF-8: 5 bytes\]\n00000000 {2}ff fe 41 00 0a/,
    );
    expect((await loop.refusal("Edit", { file_path: "f", old_string: "A", new_string: "B" })).code).toBe(
      "file.not_text",
    );
    expect((await loop.refusal("Write", { file_path: "f", content: "x" })).code).toBe("file.stale");
    expect(fs.readFileSync(disk.at("f"))).toEqual(bytes);
  });

  it("refuses devices, pipes, directories and what is absent, without waiting", async () => {
    using disk = new ToolsOnDisk();
    execFileSync("mkfifo", [disk.at("pipe")]);
    fs.mkdirSync(disk.at("dir"));
    const loop = await disk.loop();
    for (const [file_path, code] of [
      ["pipe", "file.not_regular"],
      ["dir", "file.not_regular"],
      [".", "file.not_regular"],
      ["none", "file.missing"],
      ["none/deeper", "file.missing"],
      ["/dev/zero", "path.escapes"],
    ] as const) {
      expect([file_path, (await loop.refusal("Read", { file_path })).code]).toEqual([file_path, code]);
    }
    expect((await loop.refusal("Write", { file_path: "pipe", content: "x" })).code).toBe("file.not_regular");
    expect((await loop.refusal("Grep", { path: "pipe", pattern: "x" })).code).toBe("file.not_regular");
  });

  it("never tells a path outside of the root", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "x");
    const loop = await disk.loop();
    const { text } = await loop.refusal("Write", { file_path: "f/below", content: "x" });
    expect(text).toBe("Cannot write f/below: a part of the path is no directory");
    const long = await loop.refusal("Write", { file_path: "n".repeat(300), content: "x" });
    expect(long).toMatchObject({ code: "file.failed" });
    expect(long.text).not.toContain("/proc");
  });
});

describe("Write (C9)", () => {
  it("makes an absent file and its directories, without an observation", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    expect(await loop.ok("Write", { file_path: "a/b/c.txt", content: "new\n" })).toBe("Created a/b/c.txt, 4 bytes.");
    expect(disk.read("a/b/c.txt")).toBe("new\n");
    expect(leftovers(disk.at("a/b"))).toEqual([]);
    // Its own write was seen whole.
    await loop.ok("Write", { file_path: "a/b/c.txt", content: "newer\n" });
  });

  it("refuses what was not seen, seen in part or seen as absent, and what it then shows counts as seen", async () => {
    using disk = new ToolsOnDisk();
    disk.write("nothing", "1\n2\n");
    disk.write("part", "1\n2\n3\n");
    const loop = await disk.loop();
    await loop.ok("Read", { file_path: "part", limit: 1 });
    await loop.refusal("Read", { file_path: "absent" });
    disk.write("absent", "theirs\n");
    for (const file_path of ["nothing", "part", "absent"]) {
      const before = disk.read(file_path);
      const { code, text } = await loop.refusal("Write", { file_path, content: "mine\n" });
      expect(code).toBe("file.stale");
      expect(text).toContain(before);
      expect(disk.read(file_path)).toBe(before);
      await loop.ok("Write", { file_path, content: "mine\n" });
      expect(disk.read(file_path)).toBe("mine\n");
    }
  });

  it("shows only a part of a large file that was not seen, and that is no observation", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "line\n".repeat(20_000));
    const loop = await disk.loop();
    for (let again = 0; again < 2; again++) {
      const { code, text } = await loop.refusal("Write", { file_path: "f", content: "x" });
      expect(code).toBe("file.stale");
      expect(text.length).toBeLessThan(25_000);
    }
  });

  it("keeps permission bits, and drops set-id", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    for (const [mode, after] of [
      [0o755, 0o755],
      [0o600, 0o600],
      [0o4755, 0o755],
    ] as const) {
      disk.write("f", "old");
      fs.chmodSync(disk.at("f"), mode);
      await loop.ok("Read", { file_path: "f" });
      await loop.ok("Write", { file_path: "f", content: `for ${mode}` });
      expect(fs.statSync(disk.at("f")).mode & 0o7777).toBe(after);
      fs.rmSync(disk.at("f"));
    }
  });

  it("changes all names of a file that has several", async () => {
    using disk = new ToolsOnDisk();
    disk.write("a", "a longer text");
    fs.linkSync(disk.at("a"), disk.at("b"));
    const loop = await disk.loop();
    await loop.ok("Read", { file_path: "a" });
    await loop.ok("Write", { file_path: "a", content: "short" });
    expect([disk.read("a"), disk.read("b")]).toEqual(["short", "short"]);
    expect(fs.statSync(disk.at("b")).nlink).toBe(2);
  });

  it("keeps CRLF and the byte order mark", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "\ufeffa\r\nb\r\n");
    const loop = await disk.loop();
    expect(await loop.ok("Read", { file_path: "f" })).toBe(
      "     1\ta\n     2\tb\n[line ends are CRLF; edits keep them]\n[it begins with a byte order mark; edits keep it]",
    );
    await loop.ok("Write", { file_path: "f", content: "c\nd\n" });
    expect(disk.read("f")).toBe("\ufeffc\r\nd\r\n");
  });

  it("writes nothing after an abort, and nothing without its permit (C5)", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "old");
    const loop = await disk.loop();
    await loop.ok("Read", { file_path: "f" });
    const abort = new AbortController();
    const call = loop.call("Write", { file_path: "f", content: "new" }, abort.signal);
    // The permit is granted in a later step than this one, and the bytes are synced later still.
    abort.abort(new Error("enough"));
    await expect(call).rejects.toThrow();
    expect(disk.read("f")).toBe("old");
    expect(leftovers(disk.root)).toEqual([]);
    expect(disk.coordinator.idle()).toBe(true);
  });

  it("refuses half a surrogate pair", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    expect((await loop.refusal("Write", { file_path: "f", content: "\ud800" })).code).toBe("option.invalid");
    expect(fs.existsSync(disk.at("f"))).toBe(false);
  });

  it("says when the root is another directory now, and writes in neither (R7)", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    await loop.ok("Write", { file_path: "f", content: "1" });
    fs.renameSync(disk.root, path.join(disk.dir, "moved"));
    expect((await loop.refusal("Write", { file_path: "g", content: "1" })).code).toBe("workspace_root.changed");
    fs.mkdirSync(disk.root);
    expect((await loop.refusal("Write", { file_path: "g", content: "1" })).code).toBe("workspace_root.changed");
    expect(fs.readdirSync(disk.root)).toEqual([]);
  });
});

describe("Edit (C9)", () => {
  it("needs one match, and says where there are more", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "x\ny\nx\n");
    const loop = await disk.loop();
    const edit = (old_string: string, more: object = {}) => ({ file_path: "f", old_string, new_string: "z", ...more });
    expect(await loop.refusal("Edit", edit("x"))).toMatchObject({
      code: "file.no_unique_match",
      text: expect.stringContaining("2 times, in lines 1, 3") as string,
    });
    expect((await loop.refusal("Edit", edit("none"))).text).toContain("is not in it");
    expect(disk.read("f")).toBe("x\ny\nx\n");
    await loop.ok("Edit", edit("x", { replace_all: true }));
    expect(disk.read("f")).toBe("z\ny\nz\n");
    expect((await loop.call("Edit", edit("z"))).isError).toBe(true);
  });

  it("takes places that overlap for two", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "aaa");
    const loop = await disk.loop();
    expect((await loop.refusal("Edit", { file_path: "f", old_string: "aa", new_string: "b" })).text).toContain(
      "2 times",
    );
    await loop.ok("Edit", { file_path: "f", old_string: "aa", new_string: "b", replace_all: true });
    expect(disk.read("f")).toBe("ba");
  });

  it("takes the texts literally", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "a.c $& abc");
    const loop = await disk.loop();
    await loop.ok("Edit", { file_path: "f", old_string: "a.c", new_string: "$&$1$$" });
    expect(disk.read("f")).toBe("$&$1$$ $& abc");
  });

  it("keeps CRLF, the byte order mark and every other line end of a mixed file", async () => {
    using disk = new ToolsOnDisk();
    disk.write("crlf", "\ufeffa\r\nb\r\nc\r\n");
    disk.write("mixed", "a\r\nb\nc\r\nd\n");
    const loop = await disk.loop();
    await loop.ok("Edit", { file_path: "crlf", old_string: "a\nb", new_string: "1\n2\n3" });
    expect(disk.read("crlf")).toBe("\ufeff1\r\n2\r\n3\r\nc\r\n");
    await loop.ok("Edit", { file_path: "mixed", old_string: "a\nb", new_string: "1\n2" });
    expect(disk.read("mixed")).toBe("1\r\n2\nc\r\nd\n");
  });

  it("applies to what others wrote meanwhile, keeps it, and shows it", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "one\ntwo\nthree\n");
    const loop = await disk.loop();
    await loop.ok("Read", { file_path: "f" });
    disk.write("f", "one\ntwo\nTHREE\n");
    const text = await loop.ok("Edit", { file_path: "f", old_string: "one", new_string: "1" });
    expect(disk.read("f")).toBe("1\ntwo\nTHREE\n");
    expect(text).toContain("+THREE");
    // It was shown all that had changed, so it knows the file.
    await loop.ok("Write", { file_path: "f", content: "all\n" });
  });

  it("of a file that was not read gives no right to write over it", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", "one\ntwo\n");
    const loop = await disk.loop();
    await loop.ok("Edit", { file_path: "f", old_string: "one", new_string: "1" });
    expect((await loop.refusal("Write", { file_path: "f", content: "x" })).code).toBe("file.stale");
  });
});

describe("List", () => {
  it("shows kinds, says what it leaves out, and follows links inside only", async () => {
    using disk = new ToolsOnDisk();
    disk.write("dir/f", "12345");
    fs.symlinkSync("dir", disk.at("link"));
    fs.symlinkSync("/etc", disk.at("out"));
    const loop = await disk.loop();
    expect(await loop.ok("List", {})).toBe("dir/\nlink -> dir\nout -> /etc");
    expect(await loop.ok("List", { path: "link" })).toBe("f  5");
    expect((await loop.refusal("List", { path: "out" })).code).toBe("path.escapes");
    expect((await loop.refusal("List", { path: "none" })).code).toBe("file.missing");
    for (let i = 0; i < 1_005; i++) disk.write(`many/${i}`, "");
    expect(await loop.ok("List", { path: "many" })).toMatch(/\[5 of 1005 entries are left out; use Glob/);
  });
});
