/**
 * `Bash`: a shell command in the workspace. It may write anywhere, so it holds the whole tree while it runs (C1), and the
 * group of its processes is ended before it returns (G5). The directory it ends in is where the next one begins, inside
 * the root only.
 */
import { LooprigError, ToolDefinitionError, errnoOf, openBelow, rootPath } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import { nodeFileSystem } from "../core/index.js";
import { builtIn, defineTools, jsonSchema, tool } from "../tool/index.js";
import type { NeedsApproval, Tool, ToolDefinition, ToolOutput, WorkspaceBinding } from "../tool/index.js";
import { BoundedOutput } from "./bounded-output.js";
import { locate } from "./locate.js";
import { LoopFiles } from "./loop-files.js";
import { exitStatus, runInGroup } from "./process-group.js";
import type { GroupExit } from "./process-group.js";

const timeoutDefaultMs = 120_000;
const timeoutMaxMs = 600_000;

/** What the model says to `Bash`. `timeout_ms` is in milliseconds, 1 to 600 000; default 120 000. */
export interface BashInput {
  readonly command: string;
  readonly timeout_ms?: number;
}

/** How `bash()` is set up. */
export interface BashOptions {
  /** Default true: a command can reach outside of the root, where nothing is captured (T5). */
  readonly needsApproval?: NeedsApproval<BashInput> | undefined;
}

/** The tool `Bash`. Throws `tool_definition.invalid`. */
export function bash(options: BashOptions = {}): ToolDefinition<"Bash", readonly ["workspace"]> {
  const needsApproval = approvalOf(options);
  const definition = defineTools({
    name: "bash",
    produces: ["Bash"],
    requires: ["workspace"],
    build: ({ workspace, sessionId }) => ({ Bash: shell(workspace, sessionId, needsApproval, nodeFileSystem) }),
  });
  // Whether a person is asked is the caller's choice; how a rule of theirs decides cannot be told.
  const asks = typeof needsApproval === "function" ? "by rule" : needsApproval;
  return builtIn(definition, { version: 1, ...(asks === true ? {} : { settings: { needsApproval: asks } }) });
}

/** Checked where it is written: a misspelt option, or a word that is none, is no answer to whether anybody is asked. */
function approvalOf(options: unknown): NeedsApproval<BashInput> {
  if (typeof options !== "object" || options === null) throw invalid("options", "an object");
  const unknown = Object.keys(options).find((name) => name !== "needsApproval");
  if (unknown !== undefined) throw invalid(unknown.slice(0, 64), "known here; the one member is needsApproval");
  const { needsApproval = true } = options as BashOptions;
  if (typeof needsApproval === "boolean" || typeof needsApproval === "function") return needsApproval;
  throw invalid("needsApproval", "true, false or a function of the input");
}

const invalid = (field: string, wanted: string): ToolDefinitionError =>
  new ToolDefinitionError("tool_definition.invalid", `Cannot define "bash": \`${field}\` is not ${wanted}`, {
    ...{ tool: "bash", field, wanted },
  });

function shell(
  workspace: WorkspaceBinding,
  sessionId: string,
  needsApproval: NeedsApproval<BashInput>,
  fileSystem: FileSystem,
): Tool {
  const files = new LoopFiles(workspace, fileSystem);
  let cwd: WorkspacePath = rootPath;
  return tool({
    description: `Runs a command with bash in the workspace and answers with its output, errors in their place. There is no terminal and no input. The working directory stays for the next command while it is inside the workspace; nothing else does. Processes left in the background are ended. After ${timeoutDefaultMs / 1_000} s, or \`timeout_ms\`, it is ended.`,
    inputSchema: jsonSchema<BashInput>({
      type: "object",
      properties: {
        command: { type: "string", minLength: 1 },
        timeout_ms: { type: "integer", minimum: 1, maximum: timeoutMaxMs, description: `Default ${timeoutDefaultMs}` },
      },
      required: ["command"],
      additionalProperties: false,
    }),
    needsApproval,
    execute: async ({ command, timeout_ms = timeoutDefaultMs }, { signal, progress }) => {
      if (command.includes("\0")) return { text: "Nothing ran: the command holds a NUL.", isError: true };
      using permit = await workspace.coordinator.acquire({ operation: "whole-mutation" }, { signal });
      using top = files.open();
      const notes: string[] = [];
      const output = new BoundedOutput({ kept: workspace.outputs !== undefined });
      try {
        using directory = workingDirectory(top, cwd, notes);
        const exit = await runInGroup(fileSystem, {
          command,
          cwd: directory.self().toString(),
          env: environment(workspace.root, sessionId),
          timeoutMs: timeout_ms,
          signal: AbortSignal.any([signal, permit.revoked]),
          onOutput: (piece) => {
            output.add(piece);
            progress(piece.toString("utf8"));
          },
          beforeStart: async (pid) => {
            await workspace.records?.processStarted({ pid, command });
            permit.assertHeld();
          },
        });
        await workspace.records?.processExited({ exitCode: exit.exitCode, signal: exit.killedBy });
        const next = placeOf(files, exit.cwd);
        if (exit.cwd !== undefined && next === undefined) {
          notes.push("it ended outside of the workspace; the next command begins at the root");
        }
        // A shell that was killed did not say where it was; the next command begins where this one did.
        if (exit.cwd !== undefined) cwd = next ?? rootPath;
        return answer(exit, output.text(), notes, timeout_ms);
      } catch (error) {
        throw errnoOf(error) === undefined ? error : unstartable(error);
      } finally {
        workspace.observations?.invalidateAll();
      }
    },
  });
}

/** Where the last command ended, or the root when that is no directory of it any more. */
function workingDirectory(top: Directory, cwd: WorkspacePath, notes: string[]): Directory {
  try {
    return openBelow(top, cwd);
  } catch {
    notes.push("the working directory is not there any more; the command ran at the root");
    return openBelow(top, rootPath);
  }
}

/** The directory the shell says it is in, if it is inside the root and there. */
function placeOf(files: LoopFiles, reported: string | undefined): WorkspacePath | undefined {
  if (reported?.startsWith("/") !== true) return undefined;
  try {
    const path = locate(files.fileSystem, files.root, reported);
    using top = files.open();
    openBelow(top, path).close();
    return path;
  } catch {
    return undefined;
  }
}

/** Ours, without where we are; a command learns whose it is (cli.md). */
function environment(root: string, sessionId: string): Record<string, string | undefined> {
  return {
    ...process.env,
    ...{ PWD: undefined, OLDPWD: undefined, BASH_ENV: undefined, ENV: undefined },
    ...{ LOOPRIG_ROOT: root, LOOPRIG_SESSION: sessionId, TERM: "dumb" },
  };
}

function answer(exit: GroupExit, output: string, notes: string[], timeoutMs: number): ToolOutput {
  const status = exitStatus(exit);
  if (exit.ended === "timeout") {
    notes.push(`ended after ${timeoutMs} ms; give a larger \`timeout_ms\` or do less at once`);
  } else if (exit.ended === "abort") notes.push("interrupted; it may have done a part of its work");
  else if (status !== 0) notes.push(`exit code ${status}`);
  if (exit.leftovers) notes.push("processes it left in the background were ended");
  const body = output === "" && notes.length === 0 ? "[no output]" : output;
  const text = [...(body === "" ? [] : [body.replace(/\n$/, "")]), ...notes.map((note) => `[${note}]`)].join("\n");
  const isError = exit.ended !== "itself" || status !== 0;
  return { text, data: { exitCode: status, ended: exit.ended }, isError };
}

const unstartable = (cause: unknown): LooprigError =>
  new LooprigError(
    "exec.not_found",
    "Cannot run the command: bash could not be started here",
    { command: "bash" },
    { cause },
  );
