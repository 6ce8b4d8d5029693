import { LooprigError, isLooprigError, mintSessionId } from "../../core/index.js";
import type { SessionId } from "../../core/index.js";
import type { SessionSummary } from "../../session-store/index.js";
import type { CollectReport } from "../../workspace-store/index.js";
import { count } from "../amounts.js";
import { flag, usage } from "../args.js";
import { ask } from "../ask.js";
import { defineCommand } from "../command.js";
import type { Context } from "../context.js";
import { sessionEntry, sessionsDocument } from "../documents.js";
import { exit } from "../exit-codes.js";
import { withPlace } from "../place.js";
import type { Place } from "../place.js";
import { sessionsText, spaceEntry, spaceText } from "../render-sessions.js";
import type { SessionSizes } from "../render-sessions.js";
import { findSession, sessionNames } from "../session-names.js";

export const command = defineCommand({
  grammar: {
    command: "sessions",
    options: {
      sizes: flag(["--sizes"], "what each keeps, and what only it keeps; reads every directory of every tree"),
      now: flag(["--now"], "with rm: frees its space at once, without the day of grace"),
    },
    operands: ["rm", "ID"],
    required: 0,
    rest: "none",
  },
  usage: "sessions [--sizes] [rm ID [--now]]",
  summary: "list sessions; delete one with its space",
  narrows: true,
  notes: [
    "Without --root the sessions of every root are listed. Deleting a session deletes its history and what only it kept; files in its root stay as they are, and its turns can no longer be undone. The space comes back with the first looprig gc a day later, or at once with --now.",
  ],
  run: async (context, { options, operands: [verb, id] }) => {
    if (verb !== undefined && verb !== "rm") {
      throw usage(
        verb,
        `Cannot use the word ${JSON.stringify(verb)}: sessions takes only "rm ID"`,
        "rm ID",
        "looprig sessions --help",
      );
    }
    if (verb === "rm" && id === undefined) {
      throw usage("ID", "Cannot delete a session without its ID", "ID", "looprig sessions");
    }
    if (options.now && verb === undefined) {
      throw usage("--now", "Cannot use --now without rm: a listing frees nothing; leave it out", "rm ID with --now");
    }
    return withPlace(context, async (place) => {
      const { listSessions } = await import("../../workspace/index.js");
      const { globals, signal } = context;
      const all = await listSessions(place.storage, { signal });
      if (id !== undefined) return remove(context, place, id, { all, graceMs: options.now ? 0 : undefined });
      const here = all.filter((each) => globals.root === undefined || each.root === place.root);
      const only = globals.session === undefined ? undefined : findSession(globals.session, here.map(idOf));
      const shown = here.filter(({ id: each }) => only === undefined || each === only);
      const root = globals.root === undefined ? null : place.root;
      const sizes = options.sizes && shown.length > 0 ? await sizesOf(place, signal) : undefined;
      if (globals.json) await context.document("sessions", root, sessionsDocument(shown, sizes));
      else if (shown.length === 0) await context.say("No sessions yet. looprig exec -- <command> starts one.\n");
      else await context.print(sessionsText(shown, { ...viewOf(context, all), sizes }));
      return exit.done;
    });
  },
});

const viewOf = ({ environment, now, style }: Context, all: readonly SessionSummary[]) => ({
  ...{ home: environment.home, now, style },
  sessionName: sessionNames(all.map(idOf)),
});

const idOf = ({ id }: SessionSummary): SessionId => id;

async function sizesOf({ storage }: Place, signal: AbortSignal): Promise<SessionSizes> {
  const { createWorkspaceStore } = await import("../../workspace-store/index.js");
  const { owners } = await createWorkspaceStore(storage).stats({ signal });
  return new Map(owners.map((each) => [each.owner, each]));
}

async function remove(
  context: Context,
  place: Place,
  given: string,
  { all, graceMs }: { readonly all: readonly SessionSummary[]; readonly graceMs: number | undefined },
): Promise<number> {
  const { deleteSession } = await import("../../workspace/index.js");
  const { globals, signal } = context;
  const id = findSession(given, all.map(idOf));
  const session = all.find((each) => each.id === id);
  const view = viewOf(context, all);
  const name = view.sessionName(id);
  if (!globals.yes) {
    if (!context.canAsk) {
      throw new LooprigError(
        "consent.needed",
        `Cannot delete session ${name} without a yes: there is no terminal to ask on, so nothing was deleted`,
        { action: "sessions rm" },
        { hint: "--yes answers it" },
      );
    }
    if (session !== undefined)
      await context.environment.stderr.write(sessionsText([session], { ...view, style: context.talkStyle }));
    const turns = session === undefined ? "" : ` with ${count(session.turns, "turn")}`;
    if (
      !(await ask(context, { text: `Delete session ${name}${turns}? It cannot be undone afterwards.`, default: "no" }))
    ) {
      await context.say("Nothing was deleted.\n");
      return exit.failed;
    }
  }
  await deleteSession(place.storage, id, { signal });
  const space = await giveBack(context, place, graceMs);
  if (globals.json) {
    const root = session?.root ?? null;
    const deleted = session === undefined ? { id } : sessionEntry(session);
    await context.document("sessions", root, { deleted, ...spaceEntry(space) });
  } else await context.report(`Session ${name} is deleted; files stay as they are. ${spaceText(space, context.now)}\n`);
  return exit.done;
}

/**
 * What nobody keeps any more begins to wait, or goes. The session is deleted whatever becomes of that: somebody else may be
 * collecting, and the next collection finds the same.
 */
async function giveBack(
  context: Context,
  { storage }: Place,
  graceMs: number | undefined,
): Promise<CollectReport | undefined> {
  const { createWorkspaceStore } = await import("../../workspace-store/index.js");
  const { signal } = context;
  try {
    const claim = { sessionId: mintSessionId(), command: "sessions rm" };
    return await createWorkspaceStore(storage).collect({ claim, graceMs, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (!isLooprigError(error)) throw error;
    return undefined;
  }
}
