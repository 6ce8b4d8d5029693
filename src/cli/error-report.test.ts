import { describe, expect, test } from "vitest";
import { LooprigError, ModelError, WorkspaceRootBusyError } from "../core/index.js";
import { errorDocument, errorText } from "./error-report.js";
import type { ErrorContext } from "./error-report.js";
import { exitCodeFor } from "./exit-codes.js";
import { Interrupted } from "./interrupt.js";
import { OutputFailed } from "./output.js";
import { plainStyle } from "./style.js";
import { at, holder, home, path, root, second } from "./testing/samples.js";

const context = (more: Partial<ErrorContext> = {}): ErrorContext => ({
  ...{ home, now: at(14, 30), startedFrom: undefined, style: plainStyle },
  ...more,
});
const busy = new WorkspaceRootBusyError("workspace_root.busy", "Cannot open", { root, relation: "same", holder });

describe("a failure on stderr", () => {
  test("busy names the holder's command, session, process and start", () => {
    expect(errorText(busy, context())).toBe(
      'looprig: ~/calc is in use: exec "claude", session b71c, pid 4121, since 14:02\n' +
        "  It is free as soon as that command ends; looprig status shows it.\n",
    );
  });

  test("busy says plainly that it is the session this command was started from", () => {
    expect(errorText(busy, context({ startedFrom: second }))).toContain(
      "  That is the session this command was started from: it works once that command has ended.\n",
    );
  });

  test("a root that is not the recorded one says how to accept it, or where it went", () => {
    const changed = (state: "replaced" | "moved" | "missing", movedTo?: string): string =>
      errorText(
        new LooprigError("workspace_root.changed", "Cannot use it", {
          ...{ root, state },
          ...(movedTo === undefined ? {} : { movedTo }),
        }),
        context(),
      );
    expect(changed("replaced")).toContain("--adopt-root accepts");
    expect(changed("moved", "/home/ada/new calc")).toContain("--root '/home/ada/new calc'");
    expect(changed("missing")).toContain("looprig restore last");
  });

  test("a tree that is too large lists its largest directories with the option that leaves each out", () => {
    const error = new LooprigError("capture.too_large", "Cannot capture", {
      ...{ files: 600_000, bytes: 2 ** 33 },
      largest: [
        { path: "node_modules", bytes: 2 ** 32 },
        { path: "my data", bytes: 1024 },
      ],
    });
    expect(errorText(error, context())).toMatchInlineSnapshot(`
      "looprig: Cannot capture
        4.0 GiB  node_modules  --exclude /node_modules/
        1.0 KiB  my data       --exclude '/my data/'
        Leave out what need not be kept with --exclude, or take all of it with --allow-large
      "
    `);
  });

  test("paths are listed as they can be typed", () => {
    const error = new LooprigError("restore.tree_moved", "Cannot go on", { paths: ["a\nb", "src/x"] });
    expect(errorText(error, context())).toBe('looprig: Cannot go on\n  "a\\nb"\n  src/x\n');
  });

  test("the library's hint stands where we have none of our own", () => {
    const error = new LooprigError("usage.invalid", "Cannot", { field: "x", wanted: "y" }, { hint: "looprig --help" });
    expect(errorText(error, context())).toBe("looprig: Cannot\n  looprig --help\n");
  });

  test("a command whose end could not be recorded is said to have run", () => {
    const error = new LooprigError("exec.unrecorded", "The command ran and ended with 3", { turn: 4, exitCode: 3 });
    expect(errorText(error, context())).toBe(
      "looprig: The command ran and ended with 3\n  It ran to its end and need not run again; looprig status shows what it changed\n",
    );
    expect(exitCodeFor(error, "exec")).toBe(125);
  });

  test("a hint shows nothing that a terminal would act on", () => {
    const error = new LooprigError("usage.invalid", "Cannot", { field: "x", wanted: "y" }, { hint: "x\u001b[2J\ny" });
    expect(errorText(error, context())).toBe("looprig: Cannot\n  x\ufffd[2J\ufffdy\n");
  });

  test("a root that is too broad is mended on the command line, not with an option of the library", () => {
    const error = new LooprigError("workspace_placement.root_too_broad", "… allow it with allowBroadRoot", {
      ...{ root: home as typeof root, reason: "a home directory" },
    });
    expect(errorText(error, context())).toBe(
      "looprig: Cannot use ~ as a root: it is a home directory; choose a directory inside it\n" +
        "  --root DIR names one, or start looprig inside it\n",
    );
  });

  test("an unprotected turn lists its paths, not without end, and the way that replaces what no record explains", () => {
    const told = (n: number): string[] => {
      const paths = Array.from({ length: n }, (_, i) => path(`f${i}`));
      const details = { turn: "t1", paths, since: "t1^" };
      return errorText(new LooprigError("undo.unprotected", "Cannot undo t1", details), context()).split("\n");
    };
    expect(told(2)).toEqual([
      ...["looprig: Cannot undo t1", "  f0", "  f1", "  looprig diff t1^ now shows what is different"],
      ...["  looprig restore t1^ --exact -- PATH brings back single files", ""],
    ]);
    expect(told(60)).toHaveLength(1 + 50 + 1 + 2 + 1);
    expect(told(60)[51]).toBe("  … and 10 more; --json lists all");
  });

  test("an output that could not be written is told in words", () => {
    const cause = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    expect(errorText(new OutputFailed(cause), context())).toBe(
      "looprig: Cannot write the output: no space left on device (ENOSPC); looprig status and looprig log show what was done\n",
    );
    expect(errorDocument(new OutputFailed(cause), context()).code).toBe("output");
  });

  test("a server that does not answer is named, without what its address may hide", () => {
    const failed = (code: string, url: string): string => {
      const errno = Object.assign(new Error(`connect ${code}`), { code });
      const cause = Object.assign(new Error("Cannot connect to API", { cause: errno }), { url });
      return errorText(new ModelError("model.call_failed", "the call failed", { model: "m" }, { cause }), context());
    };
    expect(failed("ECONNREFUSED", "http://user:secret@localhost:11434/v1/chat?key=secret")).toBe(
      'looprig: Cannot call model "m": nothing answers at http://localhost:11434 (ECONNREFUSED); is the server running?\n' +
        "  --base-url URL says where it is asked for\n",
    );
    expect(failed("ECONNRESET", "http://localhost/")).toBe("looprig: the call failed\n");
    expect(failed("ECONNREFUSED", "no address")).toBe("looprig: the call failed\n");
  });

  test("a name that is unknown is told once what there is, or how to begin", () => {
    const told = (hint?: string): string =>
      errorText(
        new LooprigError("ref.unknown", "Cannot find it", { given: "c9" }, hint === undefined ? {} : { hint }),
        context(),
      );
    expect(told()).toBe("looprig: Cannot find it\n  looprig log --all lists what there is\n");
    expect(told("looprig exec")).toBe("looprig: Cannot find it\n  looprig exec\n");
  });

  test("an interruption needs no words", () => expect(errorText(new Interrupted("SIGINT"), context())).toBe(""));

  test("what is not ours is told by its name, without a stack", () => {
    expect(errorText(new TypeError("x is not y"), context())).toBe("looprig: TypeError: x is not y\n");
  });
});

describe("looprig.error/1", () => {
  test("has the code, the message, the hint and the fields of the table", () => {
    expect(JSON.parse(JSON.stringify(errorDocument(busy, context())))).toEqual({
      schema: "looprig.error/1",
      code: "workspace_root.busy",
      message: "Cannot open",
      hint: "It is free as soon as that command ends; looprig status shows it.",
      details: { root, relation: "same", holder: { ...holder, since: holder.since.toISOString() } },
    });
  });

  test("has a code for what is not ours", () => {
    expect(errorDocument(new Error("x"), context())).toMatchObject({ code: "internal", message: "x" });
    expect(errorDocument(new Interrupted("SIGINT"), context()).code).toBe("interrupted");
  });

  test("keeps names whose bytes are not UTF-8 reversible", () => {
    const error = new LooprigError("restore.tree_moved", "", { paths: [path("caf\udce9")] });
    expect(JSON.stringify(errorDocument(error, context()))).toContain('"caf\\udce9"');
  });
});
