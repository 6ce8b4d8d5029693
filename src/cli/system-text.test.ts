import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import { systemText } from "./system-text.js";

let root: string;
beforeEach(() => (root = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"))));
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

const told = (more?: string) => systemText(nodeFileSystem, root, more);

describe("what the agent is told", () => {
  test("is the same in every run: where it works, and its tools", () => {
    expect(told().text).toContain(root);
    for (const tool of ["Read", "Write", "Edit", "List", "Glob", "Grep", "Bash"]) expect(told().text).toContain(tool);
    expect(told()).toEqual(told());
    expect(told("  ").text).toBe(told().text);
  });

  test("then the project's AGENTS.md, then the user's own", () => {
    fs.writeFileSync(path.join(root, "AGENTS.md"), "\ufeffUse tabs.\n");
    expect(told("Be brief.").text).toMatch(/AGENTS\.md:\n\nUse tabs\.\n\n.*:\n\nBe brief\.$/);
  });

  test("an AGENTS.md that is no file, or too long, is left out and said so", () => {
    fs.mkdirSync(path.join(root, "AGENTS.md"));
    expect(told().problem).toBe("it is no regular file");
    fs.rmdirSync(path.join(root, "AGENTS.md"));
    fs.writeFileSync(path.join(root, "AGENTS.md"), "x".repeat(256 * 1024 + 1));
    expect(told().problem).toContain("longer than");
    expect(told().text).not.toContain("xxxx");
  });
});
