/**
 * Runs ripgrep in a directory that is held open: what its path leads to afterwards changes nothing. It follows no links,
 * reads no configuration, and its patterns take time in proportion to what is searched, so no pattern can hang it.
 */
import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { LooprigError, nameFromBytes, onAbort } from "../core/index.js";
import type { Abortable, Directory } from "../core/index.js";

const outputBytesMax = 16 * 1024 * 1024;
const problemBytesMax = 4_000;
const searchMsMax = 30_000;

export interface RipgrepResult {
  readonly output: Buffer;
  /** Why the output is not all there is; undefined when it is. */
  readonly cut: "much" | "long" | undefined;
}

/** What every search is told. Files that git would ignore are left out, hidden ones are not. */
const always = [
  "--no-config",
  "--no-follow",
  "--hidden",
  "--no-require-git",
  "--no-ignore-parent",
  "--no-ignore-global",
];
const without = ["--glob=!.git"];

/** Rejects with `search.failed`, or with the signal's reason. */
export async function ripgrep(
  directory: Directory,
  options: readonly string[],
  /** All that is below the directory, or one file that was opened without following a link. */
  target: "./" | number,
  { signal }: Abortable,
): Promise<RipgrepResult> {
  if (options.some((option) => option.includes("\0"))) throw failed("no text holds the NUL that is searched for");
  const program = await programPath();
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...always, ...options, ...without, "--", target === "./" ? target : "-"], {
      // The child changes into it before it becomes ripgrep, while it still has our descriptors.
      cwd: directory.self().toString(),
      stdio: [target === "./" ? "ignore" : target, "pipe", "pipe"],
    });
    const [, found, problems] = child.stdio as [null, Readable, Readable, ...unknown[]];
    const pieces: Buffer[] = [];
    let total = 0;
    let problem = "";
    let cut: RipgrepResult["cut"];
    const end = (why: RipgrepResult["cut"]): void => {
      cut ??= why;
      child.kill("SIGKILL");
    };
    const timer = setTimeout(() => end("long"), searchMsMax);
    const forget = signal === undefined ? (): void => undefined : onAbort(signal, () => end(undefined));
    found.on("data", (piece: Buffer) => {
      if (total >= outputBytesMax) return;
      pieces.push(piece.subarray(0, outputBytesMax - total));
      total += piece.length;
      if (total >= outputBytesMax) end("much");
    });
    problems.on("data", (piece: Buffer) => {
      if (problem.length < problemBytesMax) problem += nameFromBytes(piece);
    });
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      forget();
      act();
    };
    child.once("error", (cause) => settle(() => reject(failed("ripgrep could not be started", cause))));
    child.once("close", (code) =>
      settle(() => {
        if (signal?.aborted === true) reject(signal.reason as Error);
        // 1 is "nothing found"; with 2 there may be results beside files that could not be read.
        else if (cut === undefined && total === 0 && code !== 0 && code !== 1) reject(failed(firstLines(problem)));
        else resolve({ output: Buffer.concat(pieces), cut });
      }),
    );
  });
}

/** The platform's package is loaded on the first search: where it is missing, only searches are. */
async function programPath(): Promise<string> {
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    return rgPath;
  } catch (cause) {
    throw failed("the package @vscode/ripgrep has no program for this platform here", cause);
  }
}

const firstLines = (text: string): string => text.trim().split("\n").slice(0, 8).join("\n").slice(0, 1_000);

const failed = (reason: string, cause?: unknown): LooprigError =>
  new LooprigError("search.failed", `Cannot search: ${reason}`, { reason }, { cause });

/** The names below the directory that git would not ignore, last changed first. */
export async function ripgrepFiles(
  directory: Directory,
  options: Abortable,
): Promise<{ readonly names: readonly string[]; readonly cut: RipgrepResult["cut"] }> {
  const { output, cut } = await ripgrep(directory, ["--files", "--null", "--sortr=modified"], "./", options);
  return { names: splitNull(output), cut };
}

/** The names below the directory that fit a glob, those that git would ignore among them: a glob overrides that. */
export async function ripgrepGlob(
  directory: Directory,
  pattern: string,
  options: Abortable,
): Promise<{ readonly names: ReadonlySet<string>; readonly cut: RipgrepResult["cut"] }> {
  // A leading "!" would make it a pattern of what to leave out.
  const literal = pattern.startsWith("!") ? `\\${pattern}` : pattern;
  const { output, cut } = await ripgrep(directory, ["--files", "--null", `--glob=${literal}`], "./", options);
  return { names: new Set(splitNull(output)), cut };
}

function splitNull(output: Buffer): readonly string[] {
  const names: string[] = [];
  for (let from = 0; from < output.length;) {
    const end = output.indexOf(0, from);
    // A name that was cut off is none.
    if (end === -1) break;
    names.push(nameFromBytes(output.subarray(from, end)));
    from = end + 1;
  }
  return names;
}
