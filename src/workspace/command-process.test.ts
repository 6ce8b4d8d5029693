import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import { assertRunnable, startGated } from "./command-process.js";
import { identifyProcess, isSameProcess } from "./process-identity.js";

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const start = (command: readonly [string, ...string[]], env: Record<string, string> = {}) =>
  startGated(nodeFileSystem, command, { cwd: dir, env: { PATH: process.env["PATH"], ...env }, stdio: "ignore" });

describe("startGated", () => {
  it("gives the identity of the command itself, before its first instruction", async () => {
    const command = await start(["sh", "-c", "echo $$ > pid; exec sleep 100"]);
    expect(isSameProcess(nodeFileSystem, command.identity)).toBe(true);
    expect(fs.existsSync(path.join(dir, "pid"))).toBe(false);
    command.release();
    await expect
      .poll(() => fs.existsSync(path.join(dir, "pid")) && fs.readFileSync(path.join(dir, "pid"), "utf8"))
      .toBeTruthy();
    expect(Number(fs.readFileSync(path.join(dir, "pid"), "utf8"))).toBe(command.identity.pid);
    expect(identifyProcess(nodeFileSystem, command.identity.pid)).toEqual(command.identity);
    command.signal("SIGTERM");
    expect(await command.exit).toEqual({ exitCode: 143, signal: "SIGTERM" });
    expect(isSameProcess(nodeFileSystem, command.identity)).toBe(false);
  });

  it("never runs a command that is abandoned before its release", async () => {
    const command = await start(["touch", "ran"]);
    command.abandon();
    expect((await command.exit).exitCode).toBe(125);
    expect(fs.existsSync(path.join(dir, "ran"))).toBe(false);
  });

  it("hands every argument and variable on as it is, also names a shell cannot write", async () => {
    const weird = { "BASH_FUNC_f%%": "() { :; }", "a.b": "x=y z", plain: "line\nbreak" };
    const script =
      "require('fs').writeFileSync('out', JSON.stringify([process.argv.slice(1), process.env['BASH_FUNC_f%%'], process.env['a.b'], process.env.plain]))";
    const args = ["a b", "", "$HOME", "'q'", '"', "*", "-n", "line\nbreak"];
    const command = await start([process.execPath, "-e", script, "--", ...args], weird);
    command.release();
    expect((await command.exit).exitCode).toBe(0);
    expect(JSON.parse(fs.readFileSync(path.join(dir, "out"), "utf8"))).toEqual([args, ...Object.values(weird)]);
  });

  it("gives the command no descriptor of ours", async () => {
    const command = await start(["sh", "-c", "ls /proc/self/fd > fds"]);
    command.release();
    await command.exit;
    const gated = fs.readFileSync(path.join(dir, "fds"), "utf8");
    execFileSync("sh", ["-c", "ls /proc/self/fd > plain"], { cwd: dir, stdio: "ignore" });
    expect(gated).toBe(fs.readFileSync(path.join(dir, "plain"), "utf8"));
  });
});

describe("assertRunnable", () => {
  it("tells what is not there from what cannot be run", () => {
    fs.writeFileSync(path.join(dir, "plain"), "");
    fs.mkdirSync(path.join(dir, "folder"));
    expect(() => assertRunnable("sh", dir, process.env["PATH"])).not.toThrow();
    expect(() => assertRunnable("no-such-command", dir, process.env["PATH"])).toThrow(
      expect.objectContaining({ code: "exec.not_found" }) as Error,
    );
    expect(() => assertRunnable("./folder", dir, "")).toThrow(
      expect.objectContaining({ code: "exec.not_executable" }) as Error,
    );
    expect(() => assertRunnable("./missing", dir, "")).toThrow(
      expect.objectContaining({ code: "exec.not_found" }) as Error,
    );
  });

  it("finds a relative program from the directory the command starts in", () => {
    fs.writeFileSync(path.join(dir, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
    expect(() => assertRunnable("./run.sh", dir, "")).not.toThrow();
    execFileSync(path.join(dir, "run.sh"));
  });
});
