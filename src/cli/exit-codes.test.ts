import fs from "node:fs";
import { describe, expect, test } from "vitest";
import { LooprigError } from "../core/index.js";
import type { ErrorCode, ErrorDetails } from "../core/index.js";
import { exit, exitCodeFor, exitCodeOf } from "./exit-codes.js";
import { Interrupted } from "./interrupt.js";

/** The rows of the table of errors, read from its source: types are gone at run time. */
const source = fs.readFileSync(new URL("../core/errors.ts", import.meta.url), "utf8");
const codes = [...source.matchAll(/^ {2}"([a-z_]+\.[a-z_]+)":/gm)].map((match) => match[1] as ErrorCode);

const failure = <C extends ErrorCode>(code: C): LooprigError<C> => new LooprigError(code, "", {} as ErrorDetails[C]);

describe("exit statuses", () => {
  test("every error of the table has one", () => {
    expect(codes.length).toBeGreaterThan(50);
    const statuses: readonly number[] = Object.values(exit);
    for (const code of codes) expect(statuses, code).toContain(exitCodeOf(code));
  });

  test("no failure exits 0, and only exec uses 125 to 127", () => {
    for (const code of codes) {
      expect(exitCodeOf(code), code).toBeGreaterThan(0);
      expect(exitCodeOf(code) >= 125 && exitCodeOf(code) <= 127, code).toBe(false);
    }
  });

  test.each<[ErrorCode, number]>([
    ["usage.invalid", 2],
    ["consent.needed", 2],
    ["ref.unknown", 2],
    ["session.ambiguous", 2],
    ["restore.nothing", 3],
    ["restore.tree_moved", 4],
    ["workspace_root.busy", 5],
    ["workspace_root.command_running", 5],
    ["lease.held", 5],
    ["session.busy", 5],
    ["workspace_root.changed", 6],
    ["workspace_placement.root_too_broad", 6],
    ["persistence.overlap", 6],
    ["capture.too_large", 6],
    ["undo.unprotected", 6],
    ["restore.unprotected", 6],
    ["configuration.drift", 6],
    ["model.not_chosen", 2],
    ["model.script_invalid", 2],
    ["model.provider_missing", 1],
    ["model.stream_failed", 1],
    ["storage.full", 1],
    ["snapshot.object_missing", 1],
  ])("%s exits %i", (code, status) => expect(exitCodeFor(failure(code), "undo")).toBe(status));

  test("exec keeps 125 for whatever looprig refuses, and env's statuses for a command that cannot be run", () => {
    for (const code of codes.filter((each) => !each.startsWith("exec."))) {
      expect(exitCodeFor(failure(code), "exec"), code).toBe(125);
    }
    expect(exitCodeFor(failure("exec.not_executable"), "exec")).toBe(126);
    expect(exitCodeFor(failure("exec.not_found"), "exec")).toBe(127);
    expect(exitCodeFor(new Error("anything"), "exec")).toBe(125);
  });

  test("a signal exits as shells report it", () => {
    expect(exitCodeFor(new Interrupted("SIGINT"), "undo")).toBe(130);
    expect(exitCodeFor(new Interrupted("SIGTERM"), "exec")).toBe(143);
  });

  test("an error that is not ours exits 1", () => expect(exitCodeFor(new TypeError("x"), "log")).toBe(1));
});
