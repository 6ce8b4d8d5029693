import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { startProcess } from "../../tests/processes.js";
import { bash } from "./bash.js";
import { BoundedOutput } from "./bounded-output.js";
import { ToolsOnDisk } from "./testing/tools-on-disk.js";

/** Whether the process runs; the dead that wait to be reaped do not. */
function runs(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

const until = (condition: () => boolean): Promise<void> => expect.poll(condition, { timeout: 30_000 }).toBe(true);

describe("Bash", () => {
  it("answers with output and errors in their order, and with the exit code", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    expect(await loop.ok("Bash", { command: "echo 1; echo 2 >&2; echo 3" })).toBe("1\n2\n3");
    expect(await loop.call("Bash", { command: "echo no; exit 3" })).toEqual({
      text: "no\n[exit code 3]",
      data: { exitCode: 3, ended: "itself" },
      isError: true,
    });
    expect(await loop.ok("Bash", { command: "true" })).toBe("[no output]");
    expect((await loop.call("Bash", { command: "if" })).isError).toBe(true);
    expect((await loop.call("Bash", { command: "kill -9 $$" })).text).toBe("[exit code 137]");
  });

  it("has no terminal and no input, and knows whose it is", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    expect(
      await loop.ok("Bash", { command: 'cat; tty; [ -t 1 ] || echo "$LOOPRIG_ROOT"; [ -n "$LOOPRIG_SESSION" ]' }),
    ).toBe(`not a tty\n${disk.root}`);
  });

  it("keeps its directory for the next command, inside the root only", async () => {
    using disk = new ToolsOnDisk();
    fs.mkdirSync(disk.at("a/b"), { recursive: true });
    const loop = await disk.loop();
    await loop.ok("Bash", { command: "cd a/b" });
    expect(await loop.ok("Bash", { command: "pwd" })).toBe(disk.at("a/b"));
    expect((await loop.call("Bash", { command: "exec sleep 100", timeout_ms: 50 })).isError).toBe(true);
    expect(await loop.ok("Bash", { command: "pwd; cd .." })).toBe(disk.at("a/b"));
    expect(await loop.ok("Bash", { command: "pwd; cd ../.." })).toMatch(/\/a\n\[it ended outside of the workspace/);
    expect(await loop.ok("Bash", { command: "pwd; cd a/b; rm -r ../../a" })).toContain(disk.root);
    expect(await loop.ok("Bash", { command: "pwd" })).toContain(disk.root);
    expect(await (await disk.loop()).ok("Bash", { command: "pwd" })).toBe(disk.root);
  });

  it("ends what is left in the background before it returns (G5)", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    const text = await loop.ok("Bash", { command: "sleep 1000 & echo $!" });
    const pid = Number(text.split("\n")[0]);
    expect(pid).toBeGreaterThan(1);
    expect(runs(pid)).toBe(false);
    expect(text).toContain("[processes it left in the background were ended]");
  });

  it("kills what will not end when it is asked, after its time is over", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    const { text, data, isError } = await loop.call("Bash", {
      command: "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done",
      timeout_ms: 200,
    });
    expect(isError).toBe(true);
    expect(data).toMatchObject({ ended: "timeout", exitCode: 137 });
    expect(runs(Number(text.split("\n")[0]))).toBe(false);
  });

  it("ends with the signal, and says that it may have done a part", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    const abort = new AbortController();
    const call = loop.call("Bash", { command: "echo $$ > pid; echo begun; sleep 1000" }, abort.signal);
    await until(() => fs.existsSync(disk.at("pid")) && disk.read("pid").endsWith("\n"));
    abort.abort(new Error("enough"));
    expect((await call).text).toMatch(/^begun\n\[interrupted; it may have done a part of its work\]$/);
    expect(runs(Number(disk.read("pid")))).toBe(false);
    expect(disk.coordinator.idle()).toBe(true);
  });

  it("is ended when the process that started it is killed (G5)", async () => {
    using disk = new ToolsOnDisk();
    const holder = startProcess("src/builtin-tools/testing/bash-holder.ts", [disk.root, disk.at("pid")]);
    await until(() => fs.existsSync(disk.at("pid")) && disk.read("pid").endsWith("\n"));
    const pid = Number(disk.read("pid"));
    expect(runs(pid)).toBe(true);
    holder.kill("SIGKILL");
    await holder.ended;
    await until(() => !runs(pid));
  });

  it("excludes every other writer while it runs (C1)", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    const order: string[] = [];
    const shell = loop
      .ok("Bash", { command: "while [ ! -e go ]; do sleep 0.01; done" })
      .then(() => order.push("shell"));
    await until(() => disk.coordinator.counts().held === 1);
    const write = loop.ok("Write", { file_path: "f", content: "x" }).then(() => order.push("write"));
    await until(() => disk.coordinator.counts().waiting === 1);
    fs.writeFileSync(path.join(disk.root, "go"), "");
    await Promise.all([shell, write]);
    expect(order).toEqual(["shell", "write"]);
  });

  it("bounds its output, and says how much is left out", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    const text = await loop.ok("Bash", { command: "seq 1 1000000" });
    expect(text.length).toBeLessThan(34_000);
    expect(text).toMatch(/^1\n2\n/);
    expect(text).toMatch(/\n999999\n1000000$/);
    expect(text).toMatch(/\[6856128 bytes of the output are left out here/);
  });

  it("needs a yes unless told otherwise (T5)", async () => {
    using disk = new ToolsOnDisk();
    const loop = await disk.loop();
    expect(await loop.tools.get("Bash")?.needsApproval({ command: "ls" })).toBe(false);
    expect(bash().requires).toEqual(["workspace"]);
  });
});

it("a bounded output keeps beginning and end, whole characters, and counts the rest", () => {
  const output = new BoundedOutput();
  const text = "äöü€😀".repeat(20_000);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 7_777) output.add(bytes.subarray(at, at + 7_777));
  const shown = output.text();
  expect(shown).not.toContain("\ufffd");
  expect(shown.startsWith("äöü€😀")).toBe(true);
  expect(shown.endsWith("äöü€😀")).toBe(true);
  expect(shown).toContain(`[${bytes.length - 2 * 16 * 1024} bytes`);
  const small = new BoundedOutput();
  small.add(Buffer.from("abc"));
  expect(small.text()).toBe("abc");
});
