import { LooprigError, mintSessionId } from "../../core/index.js";
import type { KeepPolicy, RootDrop } from "../../workspace/index.js";
import type { CollectProgress, CollectReport, WorkspaceStore } from "../../workspace-store/index.js";
import { bytes, count } from "../amounts.js";
import { flag, usage, value } from "../args.js";
import type { OptionValues } from "../args.js";
import { ask } from "../ask.js";
import { defineCommand } from "../command.js";
import type { Context } from "../context.js";
import { parseAge } from "../duration.js";
import { exit } from "../exit-codes.js";
import { withPlace } from "../place.js";
import type { Place } from "../place.js";
import { Progress } from "../progress.js";
import {
  dryRunLine,
  gcDocument,
  gcDoneText,
  gcIdleText,
  gcPlanText,
  gcQuestion,
  isIdle,
  removes,
} from "../render-gc.js";
import type { GcData, GcView } from "../render-gc.js";
import { sessionNames } from "../session-names.js";

const options = {
  dryRun: flag(["--dry-run"], "show what it would do; change nothing"),
  now: flag(["--now"], "frees at once what nobody keeps, without the day of grace"),
  keepLast: value(["--keep-last"], {
    value: "N",
    wanted: "a number from 1",
    parse: (given) => (/^[1-9]\d{0,8}$/.test(given) ? Number(given) : undefined),
    help: "lets go of all checkpoints of this root but the newest N of each session",
  }),
  keepWithin: value(["--keep-within"], {
    value: "30d",
    wanted: "an age such as 12h, 30d or 8w",
    parse: parseAge,
    help: "lets go of all checkpoints of this root but those younger than this; with both, either keeps",
  }),
  dropLabelled: flag(["--drop-labelled"], "lets go of checkpoints with a label too"),
  all: flag(["--all"], "the checkpoints of every root, not only of this one"),
} as const;

export const command = defineCommand({
  grammar: { command: "gc", options, operands: [], required: 0, rest: "none" },
  usage: "gc [--dry-run] [--now] [--keep-last N] [--keep-within 30d] [--drop-labelled] [--all]",
  summary: "give space back: what nobody keeps any more, and what you let go of",
  narrows: false,
  notes: [
    "Space that no checkpoint uses is found, waits a day, and is freed by the next gc after that: something may still count on it that has not said so yet. --now does not wait; a capture that runs meanwhile stores again what it counted on.",
    "Without --keep-last and --keep-within every checkpoint is kept. With one, checkpoints are let go of: log still shows them, and show, restore and undo say that they were dropped by gc. These always stay: the newest tree of a root, what a session that was cut short goes on from, what the next undo and every redo need, and labelled checkpoints unless --drop-labelled. A turn whose last checkpoint stays can still be undone. Every exec is a session of its own: --keep-within is what lets old ones go.",
    "Exit: 0 done, also when everything still waits; 2 a yes is needed and there is no terminal; 3 there is nothing to do; 5 the only root it was for is in use.",
  ],
  run: async (context, parsed) => {
    const policy = policyOf(parsed.options);
    return withPlace(context, async (place) => {
      const graceMs = parsed.options.now ? 0 : undefined;
      return gc(context, place, { policy, graceMs, all: parsed.options.all, dryRun: parsed.options.dryRun });
    });
  },
});

function policyOf({
  keepLast: last,
  keepWithin: withinMs,
  dropLabelled,
  all,
}: OptionValues<typeof options>): KeepPolicy | undefined {
  if (last !== undefined || withinMs !== undefined) return { last, withinMs, dropLabelled };
  const idle = dropLabelled ? "--drop-labelled" : all ? "--all" : undefined;
  if (idle === undefined) return undefined;
  throw usage(
    idle,
    `Cannot use ${idle} alone: without --keep-last or --keep-within every checkpoint is kept`,
    "--keep-last N or --keep-within AGE with it",
    `looprig gc --keep-last 20 ${idle}`,
  );
}

interface Wish {
  readonly policy: KeepPolicy | undefined;
  readonly graceMs: number | undefined;
  readonly all: boolean;
  readonly dryRun: boolean;
}

async function gc(context: Context, place: Place, wish: Wish): Promise<number> {
  const { globals, environment } = context;
  const before = await foresee(context, place, wish);
  const { data, view } = before;
  if (isIdle(data)) return reportNothing(context, data, view, wish);
  if (wish.dryRun) {
    if (globals.json) await context.document("gc", null, gcDocument(data, { dryRun: true, result: "done" }));
    else await context.print(gcPlanText(data, view) + dryRunLine);
    return exit.done;
  }
  const asks = !globals.yes && removes(data);
  if (asks) {
    const question = gcQuestion(data, wish.graceMs);
    if (!context.canAsk) throw consentNeeded(question.text);
    await environment.stderr.write(gcPlanText(data, { ...view, style: context.talkStyle }));
    if (!(await ask(context, question))) {
      await context.say("Nothing was changed.\n");
      if (globals.json) await context.document("gc", null, gcDocument(data, { dryRun: false, result: "refused" }));
      return exit.failed;
    }
  }
  const done = { ...data, ...(await perform(context, place, wish, data)) };
  if (globals.json) await context.document("gc", null, gcDocument(done, { dryRun: false, result: "done" }));
  else await context.report(gcDoneText(done, view));
  return exit.done;
}

/** What would be let go of, and what collecting would then do. */
async function foresee(context: Context, place: Place, wish: Wish): Promise<{ data: GcData; view: GcView }> {
  const [{ createWorkspaceStore, withoutPins }, { knownRoots, listSessions, planDrop }] = await Promise.all([
    import("../../workspace-store/index.js"),
    import("../../workspace/index.js"),
  ]);
  const { environment, now, signal, style } = context;
  const { storage } = place;
  const { policy } = wish;
  const known = policy === undefined ? [] : (await knownRoots(storage, { signal })).map(({ root }) => root);
  const drops: RootDrop[] = [];
  for (const root of known.filter((each) => wish.all || each === place.root)) {
    drops.push(await planDrop(storage, root, policy ?? {}, { signal, clock: environment.now }));
  }
  const pins = drops.flatMap((each) => each.pins);
  const stats = await createWorkspaceStore(storage).stats({ signal });
  const store = createWorkspaceStore(pins.length === 0 ? storage : withoutPins(storage, pins));
  const report = await collecting(context, store, { ...wish, dryRun: true });
  const sessions = await listSessions(storage, { signal });
  return {
    data: { dir: storage.persistencePaths()[0] ?? "memory", policy, drops, stats, report, sessions },
    view: { home: environment.home, now, style, sessionName: sessionNames(sessions.map(({ id }) => id)) },
  };
}

async function perform(
  context: Context,
  { storage }: Place,
  wish: Wish,
  foreseen: GcData,
): Promise<Pick<GcData, "drops" | "report">> {
  const [{ createWorkspaceStore }, { dropCheckpoints }] = await Promise.all([
    import("../../workspace-store/index.js"),
    import("../../workspace/index.js"),
  ]);
  const { environment, signal } = context;
  const drops: RootDrop[] = [];
  for (const { root, pins, skipped } of foreseen.drops) {
    if (pins.length === 0 || skipped !== undefined) continue;
    drops.push(await dropCheckpoints(storage, root, wish.policy ?? {}, { signal, clock: environment.now }));
  }
  const skippedBefore = foreseen.drops.filter(({ skipped }) => skipped !== undefined);
  const report = await collecting(context, createWorkspaceStore(storage), { ...wish, dryRun: false });
  return { drops: [...drops, ...skippedBefore], report };
}

async function collecting(
  context: Context,
  store: WorkspaceStore,
  { graceMs, dryRun }: Pick<Wish, "graceMs" | "dryRun">,
): Promise<CollectReport> {
  const { environment, globals, signal } = context;
  const progress = new Progress(environment.stderr, "looprig: gc", globals.quiet);
  return store
    .collect({
      claim: { sessionId: mintSessionId(), command: "gc" },
      ...{ dryRun, graceMs, signal },
      onProgress: (at) => progress.show(progressText(at)),
    })
    .finally(() => progress.done());
}

const progressText = ({ stage, objects, freedBytes }: CollectProgress): string =>
  stage === "mark" ? `${count(objects, "object")} in use` : `${bytes(freedBytes)} freed`;

async function reportNothing(context: Context, data: GcData, view: GcView, wish: Wish): Promise<number> {
  const { globals } = context;
  if (globals.json) await context.document("gc", null, gcDocument(data, { dryRun: wish.dryRun, result: "nothing" }));
  else await context.report(gcIdleText(data, view));
  const inUse = data.drops.length > 0 && data.drops.every(({ skipped }) => skipped === "in use");
  return inUse ? exit.busy : exit.nothing;
}

function consentNeeded(question: string): LooprigError<"consent.needed"> {
  const would = question.charAt(0).toLowerCase() + question.slice(1, -1);
  return new LooprigError(
    "consent.needed",
    `Cannot gc without a yes: it would ${would}, and there is no terminal to ask on, so nothing was changed`,
    { action: "gc" },
    { hint: "--yes answers it; --dry-run shows what it would do" },
  );
}
