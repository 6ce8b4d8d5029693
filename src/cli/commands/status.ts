import { isLooprigError } from "../../core/index.js";
import type { TurnId } from "../../core/index.js";
import type { Context } from "../context.js";
import type {
  Change,
  ChangedBy,
  FileDiff,
  RefLike,
  RestorePlan,
  RootHistory,
  TurnSummary,
  WorkspaceView,
} from "../../workspace/index.js";
import { defineCommand } from "../command.js";
import { statusDocument } from "../documents.js";
import { spanOf } from "../diff-counts.js";
import { exit } from "../exit-codes.js";
import { sayWithoutHistory, sessionOf, withPlace, withView } from "../place.js";
import type { Place } from "../place.js";
import { listedMax, statusText, unsettledTurns } from "../render-status.js";
import type { StatusData, Undoable } from "../render-status.js";
import { sessionNames } from "../session-names.js";
import { storedAgent } from "../stored-agent.js";

export const command = defineCommand({
  grammar: { command: "status", options: {}, operands: [], required: 0, rest: "none" },
  usage: "status",
  summary: "what changed since the last checkpoint, and by whom; what can be undone",
  narrows: true,
  notes: [
    "A change is a record of ours (a file tool's own write), in a window (made while a command ran, so perhaps by someone else), or not by looprig.",
  ],
  run: async (context) =>
    withPlace(context, async (place) => {
      const { json } = context.globals;
      const { signal } = context;
      return withView(context, place, async (view) => {
        const history = await view.history({ signal });
        const undoable = place.choice.known ? await undoableOf(context, view, history) : undefined;
        const changes = place.choice.known ? await view.changes({ signal }) : [];
        const data: StatusData = {
          root: place.root,
          history,
          holder: await view.holder({ signal }),
          changes: changes.map((change) => foreseen(change, undoable)),
          unsettled: place.choice.known ? await view.unsettled({ signal }) : undefined,
          undoable,
          waiting: new Set(await waitingTurns(context, place, unsettledTurns(history))),
        };
        if (json) await context.document("status", place.root, statusDocument(data));
        else if (!place.choice.known && data.holder === undefined) await sayWithoutHistory(context, place);
        else {
          const { environment, now, style } = context;
          const sessionName = sessionNames(history.sessions);
          await context.print(statusText(data, { home: environment.home, now, sessionName, style }));
        }
        return exit.done;
      });
    }),
});

/** What `looprig undo` would take back now, and what that entry changed. */
async function undoableOf(context: Context, view: WorkspaceView, history: RootHistory): Promise<Undoable | undefined> {
  const { signal } = context;
  let plan: RestorePlan;
  try {
    plan = await view.plan({ kind: "undo", includeWindow: true, session: sessionOf(context, history) }, { signal });
  } catch (error) {
    if (isLooprigError(error, "restore.nothing", "undo.unprotected", "snapshot.dropped")) return undefined;
    throw error;
  }
  if (plan.entry === undefined) return undefined;
  const span = spanOf(plan, history, undefined);
  const changed: FileDiff[] = [];
  let more = false;
  if (span !== undefined) {
    // Undo goes from what the entry left to what it found; people want to read what it did.
    const what = "turn" in span ? { turn: span.turn } : { from: span.to, to: span.from };
    for await (const diff of view.diff({ ...what, signal })) {
      more = changed.length === listedMax;
      // Counting lines reads both sides: what is not shown is not read.
      if (more) break;
      changed.push(diff);
    }
  }
  const turn = history.turns.find(({ number }) => `t${number}` === plan.entry);
  // The paths of a command are known by its turn, unless others may have written them as well.
  const asked = turn?.kind === "prompt" || plan.window.length + plan.conflicts.length > 0;
  const authors = turn?.from !== undefined && asked ? await authorsOf(view, turn, turn.from, signal) : new Map();
  return { plan, turn, changed, more, authors };
}

/** No record explains yet what a turn that was cut short left in its open window. The plan that takes it back does. */
function foreseen(change: Change, undoable: Undoable | undefined): Change {
  const { turn, plan } = undoable ?? {};
  if (change.by.kind !== "foreign" || turn?.state !== "unsettled") return change;
  if (plan?.writes.includes(change.path) !== true && plan?.deletes.includes(change.path) !== true) return change;
  const { sessionId, number } = turn;
  return { ...change, by: { kind: "other-session", strength: "window", sessionId, turn: number } };
}

/** Those of the turns whose sessions go on with a question. */
async function waitingTurns(
  { signal }: Context,
  { storage }: Place,
  turns: readonly TurnSummary[],
): Promise<readonly TurnId[]> {
  const waiting: TurnId[] = [];
  for (const { kind, sessionId } of turns) {
    const agent = kind === "prompt" ? await storedAgent(storage, sessionId, { signal }) : undefined;
    if (agent?.waiting !== undefined) waiting.push(agent.waiting.turnId);
  }
  return waiting;
}

const hasPart = (by: Exclude<ChangedBy, { kind: "foreign" }>, turn: number): boolean =>
  by.turn === turn || by.overlaps?.some((each) => each.turn === turn) === true;

/** Who left the paths that the turn changed as they are now. */
async function authorsOf(
  view: WorkspaceView,
  turn: TurnSummary,
  since: RefLike,
  signal: AbortSignal,
): Promise<Undoable["authors"]> {
  const changes = await view.changes({ since, signal });
  return new Map(
    changes.flatMap(({ path, by }) => (by.kind !== "foreign" && hasPart(by, turn.number) ? [[path, by]] : [])),
  );
}
