import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import { systemText } from "./system-text.js";

let root: string;
beforeEach(() => (root = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"))));
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

  describe("an AGENTS.md that is not read is left out, and it is said why:", () => {
    const agents = (): string => path.join(root, "AGENTS.md");
    const leftOut = (problem: string): void => {
      expect(told()).toEqual({ text: expect.not.stringContaining("AGENTS.md") as unknown, problem });
    };

    test("a directory, and a fifo, which is not waited for", () => {
      fs.mkdirSync(agents());
      leftOut("it is no regular file");
      fs.rmdirSync(agents());
      execFileSync("mkfifo", [agents()]);
      leftOut("it is no regular file");
    });

    test("too long", () => {
      fs.writeFileSync(agents(), "x".repeat(256 * 1024 + 1));
      leftOut("it is longer than 262144 bytes");
    });

    test("binary", () => {
      fs.writeFileSync(agents(), "text\0text");
      leftOut("it is binary: it holds NUL bytes");
    });

    test.each(["/etc/hostname", "../secret", "inner/out"])("a link out of the directory, to %s", (target) => {
      const outside = `${root}.outside`;
      try {
        fs.mkdirSync(outside);
        fs.writeFileSync(path.join(outside, "secret"), "a secret\n");
        fs.mkdirSync(path.join(root, "inner"));
        fs.symlinkSync(path.join(outside, "secret"), path.join(root, "inner/out"));
        fs.symlinkSync(target.replace("..", `../${path.basename(outside)}`), agents());
        leftOut("it is a link that leads out of the directory");
      } finally {
        fs.rmSync(outside, { recursive: true });
      }
    });

    test("a link to nothing, or in a circle", () => {
      fs.symlinkSync("nothing", agents());
      leftOut("it is a link to nothing");
      fs.rmSync(agents());
      fs.symlinkSync("AGENTS.md", agents());
      leftOut("it cannot be read");
    });

    test("a link that is swapped in for a directory on the way", () => {
      fs.mkdirSync(path.join(root, "docs"));
      fs.writeFileSync(path.join(root, "docs/agents"), "Use tabs.");
      fs.symlinkSync("docs/agents", agents());
      const swapping = interceptFileSystem(nodeFileSystem, ({ name, args: [at] }) => {
        if (name !== "open" || !String(at).endsWith("/docs")) return;
        fs.renameSync(path.join(root, "docs"), path.join(root, "moved"));
        fs.symlinkSync("moved", path.join(root, "docs"));
      });
      expect(systemText(swapping, root, undefined).problem).toBe("it cannot be read");
      expect(fs.readlinkSync(path.join(root, "docs"))).toBe("moved");
    });
  });

  test.each(["relative", "absolute"])("a link that stays in the directory is followed: %s", (kind) => {
    fs.mkdirSync(path.join(root, "docs"));
    fs.writeFileSync(path.join(root, "docs/agents"), "Use tabs.");
    fs.symlinkSync(
      kind === "relative" ? "docs/../docs/agents" : path.join(root, "docs/agents"),
      path.join(root, "AGENTS.md"),
    );
    expect(told().text).toContain("Use tabs.");
    expect(told().problem).toBeUndefined();
  });
});
