/**
 * Undo, redo and restore are one course: plan, show, ask, apply, report. Each command only says what is wanted.
 *
 * Without a yes (from --yes or a terminal to ask on), and for a dry run, only a view is opened: no lease, nothing written.
 * With one, the root is taken first, so that nobody of ours changes it between the plan and the answer.
 */
import { LooprigError, isLooprigError, parseWorkspacePath } from "../core/index.js";
import type {
  RefLike,
  RestoreAction,
  RestorePlan,
  RestoreReceipt,
  RootHistory,
  Workspace,
  WorkspaceView,
} from "../workspace/index.js";
import { ask } from "./ask.js";
import { questionFor } from "./consent.js";
import type { Question } from "./consent.js";
import type { Context } from "./context.js";
import { countLines, spanOf } from "./diff-counts.js";
import { planDocument, receiptDocument } from "./documents.js";
import { exit } from "./exit-codes.js";
import { assertPathsKnown, isThere } from "./known-paths.js";
import type { Sides } from "./known-paths.js";
import { typedPath } from "./path-arguments.js";
import { sayWithoutHistory, withView, withWorkspace } from "./place.js";
import type { Place } from "./place.js";
import { conflictText, dryRunText, foreignText, nothingText, planText, receiptText } from "./render-plan.js";
import type { PlanView, Wish } from "./render-plan.js";
import { sessionNames } from "./session-names.js";

export interface Deed {
  /** Window changes are always part of the plan: planning changes nothing, and consent is asked here. */
  readonly action: (history: RootHistory) => RestoreAction;
  readonly dryRun: boolean;
  /** What others are shown as the holder while it works: `undo t1`. */
  readonly title: string;
  /** For a restore: what it goes towards. */
  readonly ref?: RefLike;
}

export async function act(context: Context, place: Place, deed: Deed): Promise<number> {
  const { yes } = context.globals;
  if (deed.dryRun || (!yes && !context.canAsk)) {
    return withView(context, place, async (view) => preview(context, place, deed, view));
  }
  return withWorkspace(context, place, { command: deed.title }, async (workspace) =>
    perform(context, place, deed, workspace),
  );
}

async function preview(context: Context, place: Place, deed: Deed, view: WorkspaceView): Promise<number> {
  const made = await makePlan(context, place, deed, view);
  if (made.exitCode !== undefined) return made.exitCode;
  const { plan, shown } = made;
  if (!deed.dryRun) throw consentNeeded(plan, questionFor(plan, shown.lines));
  const conflict = stops(plan, made.action);
  if (context.globals.json) {
    await context.document(plan.action, place.root, planDocument(plan, conflict ? "conflict" : "done", true));
  } else {
    await context.print(foreignText(shown) + planText(shown) + dryRunText(shown));
  }
  return conflict ? exit.conflict : exit.done;
}

async function perform(context: Context, place: Place, deed: Deed, workspace: Workspace): Promise<number> {
  const made = await makePlan(context, place, deed, workspace);
  if (made.exitCode !== undefined) return made.exitCode;
  const { plan, shown } = made;
  const asks = !context.globals.yes;
  await showPlan(context, { ...shown, listed: listedMax }, asks);
  if (asks && !(await ask(context, questionFor(plan, shown.lines)))) {
    await context.say("Nothing was written.\n");
    if (context.globals.json) await context.document(plan.action, place.root, planDocument(plan, "refused", false));
    return exit.failed;
  }
  const receipt = await workspace.apply(plan, { signal: context.signal });
  if (context.globals.json) await context.document(plan.action, place.root, receiptDocument(receipt));
  else {
    const namesSafety = plan.action === "restore" || plan.unproven.length > 0;
    await context.report(
      receiptText(receipt, {
        ...{ lines: shown.lines, gone: shown.gone, style: context.style, namesSafety },
        raced: receipt.conflicts.slice(plan.conflicts.length),
      }),
    );
  }
  return exitCodeOfReceipt(receipt, plan);
}

/** Enough to judge a plan by; a dry run lists everything. */
const listedMax = 40;

type Made =
  | { readonly exitCode: number }
  | {
      readonly exitCode?: undefined;
      readonly action: RestoreAction;
      readonly plan: RestorePlan;
      readonly shown: PlanView;
    };

/** The plan, or the exit status when there is nothing to do, or a conflict, which is then reported. */
async function makePlan(context: Context, place: Place, deed: Deed, view: WorkspaceView): Promise<Made> {
  const { signal } = context;
  const history = await view.history({ signal });
  const action = deed.action(history);
  let plan: RestorePlan | undefined;
  try {
    plan = await view.plan(action, { signal });
  } catch (error) {
    if (!isLooprigError(error, "restore.nothing")) throw error;
  }
  if (action.kind !== "redo" && action.paths !== undefined) {
    const paths = action.paths.map((path) => parseWorkspacePath(path));
    await assertPathsKnown(context, place, view, paths, sidesOf(action, plan, history));
  }
  if (plan === undefined || plan.writes.length + plan.deletes.length + plan.conflicts.length === 0) {
    return { exitCode: await reportNothing(context, place, action, plan, deed.dryRun) };
  }
  const lines = await countLines(view, spanOf(plan, history, deed.ref), [...plan.writes, ...plan.deletes], signal);
  const shown: PlanView = {
    ...{ plan, lines, history, now: context.now, style: context.style, gone: goneAmong(context, place, plan) },
    turn: history.turns.find((turn) => `t${turn.number}` === plan.entry),
    sessionName: sessionNames(history.sessions),
    typed: (path) => typedPath(path, place),
  };
  if (!deed.dryRun && stops(plan, action)) {
    if (context.globals.json) await context.document(plan.action, place.root, planDocument(plan, "conflict", false));
    else await context.print(planText({ ...shown, listed: listedMax }) + conflictText(shown));
    return { exitCode: exit.conflict };
  }
  return { action, plan, shown };
}

/** Where a path may be that an undo or restore was narrowed to. */
function sidesOf(
  action: Exclude<RestoreAction, { kind: "redo" }>,
  plan: RestorePlan | undefined,
  { entries, turns }: RootHistory,
): Sides {
  if (action.kind === "restore") {
    return { action: action.kind, refs: ["now", action.ref], named: `${action.ref} or here` };
  }
  // With no entry found, one of them may still have had the path; the newest are enough to tell a slip from a name.
  const meant =
    plan?.entry === undefined ? entries.slice(-entriesSearched) : entries.filter(({ name }) => name === plan.entry);
  const unsettled = turns
    .filter(({ state }) => state === "unsettled")
    .flatMap(({ from }) => (from === undefined ? [] : [from]));
  return {
    action: action.kind,
    refs: ["now", ...meant.flatMap(({ from, to }) => [from, to]), ...unsettled],
    named: `${plan?.entry ?? action.turn ?? "any turn"} or here`,
  };
}

const entriesSearched = 20;

/** Conflicts stop everything unless they are to be skipped and something else is left to do. */
function stops(plan: RestorePlan, action: RestoreAction): boolean {
  const skips = action.kind !== "restore" && action.onConflict === "skip";
  return plan.conflicts.length > 0 && !(skips && plan.writes.length + plan.deletes.length > 0);
}

/** Undo and redo of a root that has no history: told where there is one. */
export async function nothingWithoutHistory(
  context: Context,
  place: Place,
  action: RestoreAction["kind"],
): Promise<number> {
  if (context.globals.json) return reportNothing(context, place, { kind: action }, undefined);
  await sayWithoutHistory(context, place);
  return exit.nothing;
}

async function reportNothing(
  context: Context,
  place: Place,
  action: Wish,
  plan: RestorePlan | undefined,
  dryRun = false,
): Promise<number> {
  // What an entry changed was not captured: that is no success, nor is it true that there was nothing.
  const refused = plan?.entry !== undefined && plan.action !== "restore" && plan.kept.length > 0;
  if (context.globals.json) {
    const nothing: RestorePlan = plan ?? {
      ...{ action: action.kind, passedOver: [], writes: [], deletes: [], kept: [], conflicts: [], omitted: [] },
      ...{ foreign: [], unproven: [], window: [] },
    };
    await context.document(action.kind, place.root, planDocument(nothing, refused ? "refused" : "nothing", dryRun));
  } else {
    const gone = plan === undefined ? undefined : goneAmong(context, place, plan);
    await context.report(nothingText(plan, action, gone));
  }
  return refused ? exit.refused : exit.nothing;
}

/** The kept paths at which nothing stands any more: only what is there can stay. */
function goneAmong(context: Context, place: Place, plan: RestorePlan): ReadonlySet<string> {
  return new Set(
    plan.kept
      .filter(({ path, reason }) => reason === "omitted" && !isThere(context, place, path))
      .map(({ path }) => path),
  );
}

/** Where a question follows, the plan stands where the question does if stdout is not what the user looks at. */
async function showPlan(context: Context, shown: PlanView, asks: boolean): Promise<void> {
  const { json } = context.globals;
  if (asks && (json || !context.environment.stdout.terminal)) {
    const talked = { ...shown, style: context.talkStyle };
    await context.environment.stderr.write(foreignText(talked) + planText(talked));
  } else if (asks) await context.print(foreignText(shown) + planText(shown));
  else await context.report(foreignText(shown) + planText(shown));
}

/** The question that nobody is there to answer, as a refusal: it counts what would have changed. */
function consentNeeded(plan: RestorePlan, { text }: Question): LooprigError<"consent.needed"> {
  const would = text.charAt(0).toLowerCase() + text.slice(1, -1);
  const what = [plan.action, plan.entry].filter((part) => part !== undefined).join(" ");
  return new LooprigError(
    "consent.needed",
    `Cannot ${what} without a yes: it would ${would}, and there is no terminal to ask on, so nothing was written`,
    { action: plan.action },
    { hint: "--yes answers it; --dry-run shows what it would do" },
  );
}

function exitCodeOfReceipt(receipt: RestoreReceipt, plan: RestorePlan): number {
  switch (receipt.result) {
    case "done":
      return exit.done;
    case "partly":
      // Conflicts the plan had were skipped by wish; others are a race that was lost.
      return receipt.conflicts.length > plan.conflicts.length ? exit.conflict : exit.done;
    case "conflict":
      return exit.conflict;
    case "nothing":
      return exit.nothing;
    case "refused":
      return exit.refused;
    default:
      return receipt.result satisfies never;
  }
}
