/** A failure as people read it on stderr, or as the document `looprig.error/1`. Pure. */
import { displayName, errnoOf, isLooprigError } from "../core/index.js";
import type { ErrorCode, LooprigErrorOf } from "../core/index.js";
import { bytes } from "./amounts.js";
import { columns } from "./columns.js";
import { holderLine } from "./holder-line.js";
import { Interrupted } from "./interrupt.js";
import { OutputFailed } from "./output.js";
import { sessionNames } from "./session-names.js";
import { displayRoot, oneLine, shellWord, visible } from "./spelling.js";
import type { Style } from "./style.js";

export interface ErrorContext {
  readonly home: string;
  readonly now: Date;
  /** The session this command was started from (`LOOPRIG_SESSION`), if it was. */
  readonly startedFrom: string | undefined;
  readonly style: Style;
}

export function errorText(error: unknown, context: ErrorContext): string {
  if (error instanceof Interrupted) return "";
  const known = isLooprigError(error);
  const message = oneLine(known ? messageOf(error, context) : unexpected(error));
  const lines = [
    `looprig: ${context.style.red(message)}`,
    ...(known ? detailLines(error).map((line) => `  ${line}`) : []),
    ...(known ? hintsOf(error, context) : []).map((hint) => `  ${visible(hint)}`),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

export interface ErrorDocument {
  readonly schema: "looprig.error/1";
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly details: unknown;
}

export function errorDocument(error: unknown, context: Omit<ErrorContext, "style">): ErrorDocument {
  const schema = "looprig.error/1";
  if (!isLooprigError(error)) {
    const code = error instanceof Interrupted ? "interrupted" : error instanceof OutputFailed ? "output" : "internal";
    return { schema, code, message: unexpected(error), details: {} };
  }
  const { code, message, details } = error;
  const hint = hintsOf(error, context).join("; ");
  return { schema, code, message, ...(hint === "" ? {} : { hint }), details };
}

const unexpected = (error: unknown): string =>
  error instanceof OutputFailed
    ? error.message
    : error instanceof Error
      ? `${error.name === "Error" ? "" : `${error.name}: `}${error.message}`
      : String(error);

type Known = LooprigErrorOf<ErrorCode>;

/** Messages come with the error; only who is in the way is said in the command line's own words. */
function messageOf(error: Known, { home, now }: Pick<ErrorContext, "home" | "now">): string {
  const name = sessionNames([]);
  switch (error.code) {
    case "workspace_root.busy": {
      const { root, relation, holder } = error.details;
      const where =
        relation === "same" ? "is" : relation === "inside" ? "lies inside a directory" : "holds a directory";
      const who =
        holder === undefined ? " by a command that has only just begun" : `: ${holderLine(holder, now, name)}`;
      return `${displayRoot(root, home)} ${where} in use${who}`;
    }
    case "workspace_placement.root_too_broad": {
      const { root, reason } = error.details;
      return `Cannot use ${displayRoot(root, home)} as a root: it is ${reason}; choose a directory inside it`;
    }
    case "lease.held": {
      const { holder } = error.details;
      return holder === undefined ? error.message : `in use: ${holderLine(holder, now, name)}`;
    }
    case "model.call_failed": {
      const silence = silenceOf(error);
      return silence === undefined
        ? error.message
        : `Cannot call model ${JSON.stringify(error.details.model)}: ${silence}; is the server running?`;
    }
    default:
      return error.message;
  }
}

/** `nothing answers at http://localhost:11434 (ECONNREFUSED)`, when no connection came about. */
function silenceOf({ cause }: Known): string | undefined {
  if (!(cause instanceof Error) || !("url" in cause) || typeof cause.url !== "string") return undefined;
  const errno = errnoOf(cause.cause);
  if (errno === undefined || !unanswered.has(errno) || !URL.canParse(cause.url)) return undefined;
  // The rest of an address may hold a key.
  return `nothing answers at ${new URL(cause.url).origin} (${errno})`;
}

const unanswered: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** What the message counts or summarizes, one per line. */
function detailLines(error: Known): readonly string[] {
  switch (error.code) {
    case "capture.too_large":
      return columns(
        error.details.largest.map(({ path, bytes: size }) => [
          bytes(size),
          displayName(path),
          `--exclude ${shellWord(`/${path}/`)}`,
        ]),
        { right: [0] },
      );
    case "capture.incomplete":
      return columns(error.details.paths.map(({ path, class: why }) => [displayName(path), why]));
    case "restore.tree_moved":
    case "restore.unprotected":
    case "undo.unprotected":
    case "undo.needs_consent":
      return firstOf(error.details.paths.map((path) => displayName(path)));
    case "snapshot.not_collected":
      return firstOf(
        error.details.damaged.map(({ path, id }) => `${path === undefined ? "" : `${displayName(path)} in `}${id}`),
      );
    case "ref.ambiguous":
    case "session.ambiguous":
      return error.details.candidates;
    case "snapshot.name_collision":
      return error.details.pairs.map(([a, b]) => `${displayName(a)} and ${displayName(b)}`);
    default:
      return [];
  }
}

/** A list that scrolls the message away helps nobody; `--json` has all of it. */
const listedMax = 50;

const firstOf = (lines: readonly string[]): readonly string[] =>
  lines.length <= listedMax + 1
    ? lines
    : [...lines.slice(0, listedMax), `… and ${lines.length - listedMax} more; --json lists all`];

/** What to type next. The library's hint is for programs; where the command line has words of its own, they stand instead. */
function hintsOf(error: Known, context: Pick<ErrorContext, "startedFrom">): readonly string[] {
  const own = ownHints(error, context);
  return own.length > 0 ? own : error.hint === undefined ? [] : [error.hint];
}

function ownHints(error: Known, { startedFrom }: Pick<ErrorContext, "startedFrom">): readonly string[] {
  switch (error.code) {
    case "workspace_root.busy":
    case "lease.held": {
      const { holder } = error.details;
      return holder !== undefined && holder.sessionId === startedFrom
        ? ["That is the session this command was started from: it works once that command has ended."]
        : ["It is free as soon as that command ends; looprig status shows it."];
    }
    case "workspace_root.command_running": {
      const { pid, command } = error.details;
      return [`pid ${pid} is ${oneLine(command)}; wait for it, or end it with: kill ${pid}`];
    }
    case "workspace_root.changed": {
      const { state, movedTo } = error.details;
      if (state === "missing") return ["looprig restore last builds it again"];
      return [
        ...(movedTo === undefined ? [] : [`It is at ${displayName(movedTo)} now: --root ${shellWord(movedTo)}`]),
        "--adopt-root accepts the directory that stands there now",
      ];
    }
    case "workspace_placement.root_too_broad":
      return ["--root DIR names one, or start looprig inside it"];
    case "capture.too_large":
      return ["Leave out what need not be kept with --exclude, or take all of it with --allow-large"];
    case "ref.unknown":
    case "ref.ambiguous":
    case "snapshot.unknown":
      return error.hint === undefined ? ["looprig log --all lists what there is"] : [];
    case "snapshot.not_collected":
      return [
        "looprig verify --all names all of it; looprig sessions rm ID lets go of what cannot be read, if you can do without",
      ];
    case "snapshot.dest_not_empty":
      return ["Choose a directory that is empty or does not exist yet"];
    case "model.not_chosen":
      return [
        'looprig run --model anthropic/claude-sonnet-4-5 "make the tests pass"',
        'looprig run --base-url http://localhost:11434/v1 --model qwen3 "make the tests pass"',
        'looprig run --model script:steps.json "make the tests pass"',
      ];
    case "model.call_failed":
      return silenceOf(error) === undefined ? [] : ["--base-url URL says where it is asked for"];
    case "exec.unrecorded":
      return ["It ran to its end and need not run again; looprig status shows what it changed"];
    case "undo.unprotected": {
      const { since } = error.details;
      if (since === undefined) return [];
      return [
        `looprig diff ${since} now shows what is different`,
        // Without --exact it would keep the very files that have to go back: no record explains their bytes.
        `looprig restore ${since} --exact -- PATH brings back single files`,
      ];
    }
    default:
      return [];
  }
}
