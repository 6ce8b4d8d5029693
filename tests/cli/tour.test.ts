/** `npm start`: the tour does what it says, within the lines a person reads, and leaves nothing behind. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { builtFile } from "../build.js";

const tour = fileURLToPath(new URL("../../examples/careless-agent/main.mjs", import.meta.url));

test("the tour ends well, in at most 130 lines, with what to type next", () => {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  try {
    const env = { ...process.env, TMPDIR: temporary };
    const ran = spawnSync(process.execPath, [tour, builtFile("src/cli/main.ts")], { encoding: "utf8", env });
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    // npm adds four lines of its own before it.
    expect(ran.stdout.split("\n").length).toBeLessThanOrEqual(126);
    // The agent's turn with its calls, and the one that another process added to its session.
    expect(ran.stdout).toMatch(
      /› Read [^]*› Bash .* exit 1 [^]*› Edit [^]*› Edit [^]*› Bash .* exit 0 [^]*t2 done {3}6 calls {3}c5\n/,
    );
    expect(ran.stdout).toMatch(/\$ looprig run --resume ([0-9a-f]+) [^]*session \1, 1 turn before [^]*t3 done/);
    expect(ran.stdout).toMatch(
      /\n {2}looprig exec -- <command>\n {2}looprig run --model <provider>\/<name> "<what to do>"\n$/,
    );
    expect(fs.readdirSync(temporary)).toEqual([]);
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true });
  }
});

test("the tour fails loudly when a step does not do what it says", () => {
  const ran = spawnSync(process.execPath, [tour, "/dev/null"], { encoding: "utf8" });
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain("tour: not true: ");
});
