import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ToolsOnDisk } from "./testing/tools-on-disk.js";

function project(): ToolsOnDisk {
  const disk = new ToolsOnDisk();
  disk.write(".gitignore", "dist/\n");
  disk.write("src/a.ts", "export const a = 1;\n// needle\n");
  disk.write("src/deep/b.ts", "needle and needle\n");
  disk.write("readme.md", "no match here\n");
  disk.write("dist/a.js", "needle\n");
  disk.write(".hidden", "needle\n");
  disk.write(".git/config", "needle\n");
  fs.writeFileSync(path.join(disk.dir, "outside"), "needle\n");
  fs.symlinkSync("../outside", disk.at("link"));
  fs.symlinkSync("..", disk.at("up"));
  return disk;
}

const sorted = (text: string): string[] => text.split("\n").sort();

describe("Glob", () => {
  it("finds by name at any depth or by path, without ignored files, .git and what links lead to", async () => {
    using disk = project();
    const loop = await disk.loop();
    expect(sorted(await loop.ok("Glob", { pattern: "*.ts" }))).toEqual(["src/a.ts", "src/deep/b.ts"]);
    expect(await loop.ok("Glob", { pattern: "src/*.ts" })).toBe("src/a.ts");
    expect(await loop.ok("Glob", { pattern: "*.ts", path: "src/deep" })).toBe("src/deep/b.ts");
    expect(sorted(await loop.ok("Glob", { pattern: "*" }))).toEqual(
      [".gitignore", ".hidden", "readme.md", "src/a.ts", "src/deep/b.ts"].sort(),
    );
    expect(await loop.ok("Glob", { pattern: "*", path: "dist" })).toBe("dist/a.js");
    expect(await loop.ok("Glob", { pattern: "!*.ts" })).toBe('[no file here fits "!*.ts"]');
    expect((await loop.refusal("Glob", { pattern: "*", path: "up" })).code).toBe("path.escapes");
    expect((await loop.refusal("Glob", { pattern: "[" })).code).toBe("search.failed");
  });

  it("says how many it leaves out", async () => {
    using disk = new ToolsOnDisk();
    for (let i = 0; i < 1_010; i++) disk.write(`f${i}`, "");
    const text = await (await disk.loop()).ok("Glob", { pattern: "f*" });
    expect(text).toMatch(/\[10 of 1010 paths are left out; use a narrower pattern or path\]$/);
  });
});

describe("Grep", () => {
  it("answers with path, line and text, and searches what Glob would find", async () => {
    using disk = project();
    const loop = await disk.loop();
    expect(sorted(await loop.ok("Grep", { pattern: "needle$" }))).toEqual(
      [".hidden:1:needle", "src/a.ts:2:// needle", "src/deep/b.ts:1:needle and needle"].sort(),
    );
    expect(await loop.ok("Grep", { pattern: "needle", glob: "b.*" })).toBe("src/deep/b.ts:1:needle and needle");
    expect(sorted(await loop.ok("Grep", { pattern: "needle$", glob: "**" }))).toEqual(
      [".hidden:1:needle", "src/a.ts:2:// needle", "src/deep/b.ts:1:needle and needle"].sort(),
    );
    expect(await loop.ok("Grep", { pattern: "needle", path: "src/a.ts" })).toBe("src/a.ts:2:// needle");
    expect(await loop.ok("Grep", { pattern: "needle", path: "dist" })).toBe("dist/a.js:1:needle");
    expect(await loop.ok("Grep", { pattern: "--files" })).toBe('[nothing here fits "--files"]');
    expect((await loop.refusal("Grep", { pattern: "needle", path: "link" })).code).toBe("path.escapes");
    expect((await loop.refusal("Grep", { pattern: "needle", path: "none" })).code).toBe("file.missing");
    const wrong = await loop.refusal("Grep", { pattern: "(" });
    expect(wrong.code).toBe("search.failed");
    expect(wrong.text).toContain("unclosed group");
  });

  it("is bounded for many lines and for long ones, and says so", async () => {
    using disk = new ToolsOnDisk();
    disk.write("many", "needle in a line of some length\n".repeat(3_000));
    disk.write("wide", `needle ${"x".repeat(1_000_000)}\n`);
    const loop = await disk.loop();
    const text = await loop.ok("Grep", { pattern: "needle" });
    expect(text.length).toBeLessThan(45_000);
    expect(text).toMatch(/\[\d+ more lines are left out; use a narrower pattern, path or glob\]$/);
    const wide = await loop.ok("Grep", { pattern: "needle", path: "wide" });
    expect(wide.length).toBeLessThan(1_000);
  });

  it("says of a binary file only that something fits, whatever stands beside it", async () => {
    using disk = new ToolsOnDisk();
    disk.write("a", `needle\n${"filler\n".repeat(50_000)}\0\nneedle\n`);
    disk.write("b\nc", "needle\n");
    const loop = await disk.loop();
    const lines = (await loop.ok("Grep", { pattern: "needle", glob: "*" })).split("\n");
    expect(lines).toEqual(["a:1:needle", "a:[binary: not searched to its end]", '"b\\nc":1:needle']);
    disk.write("early", "needle\0");
    expect(await loop.ok("Grep", { pattern: "needle", path: "early" })).toBe("early:[binary: not searched to its end]");
  });

  it("is not hung by a pattern that would hang a backtracking engine", async () => {
    using disk = new ToolsOnDisk();
    disk.write("f", `${"a".repeat(50_000)}!\n`);
    const loop = await disk.loop();
    expect(await loop.ok("Grep", { pattern: "^(a+)+$" })).toBe('[nothing here fits "^(a+)+$"]');
  });

  it("ends with the signal", async () => {
    using disk = project();
    const loop = await disk.loop();
    await expect(loop.call("Grep", { pattern: "x" }, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  });
});
