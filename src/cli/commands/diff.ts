import type { FileDiff, RootHistory } from "../../workspace/index.js";
import { flag, usage } from "../args.js";
import { defineCommand } from "../command.js";
import { diffDocument } from "../documents.js";
import { exit } from "../exit-codes.js";
import { assertPathsKnown } from "../known-paths.js";
import { pathArguments } from "../path-arguments.js";
import { assertKnown, sayWhere, sayWithoutHistory, sessionOf, withPlace, withView } from "../place.js";
import { refArgument } from "../ref-argument.js";
import type { RefArgument } from "../ref-argument.js";
import { colourDiff, statText } from "../render-diff.js";

export const command = defineCommand({
  grammar: {
    command: "diff",
    options: { stat: flag(["--stat"], "only which files, and how many lines") },
    operands: ["A", "B"],
    required: 0,
    rest: "paths",
  },
  usage: "diff [A] [B] [--stat] [-- PATH…]",
  summary: "what differs between two checkpoints; default: what the last turn changed",
  narrows: true,
  notes: [
    "A and B are c12, t4, t4^, last, now, a label, or eight or more hex digits; A alone is compared with now. What turn 4 changed is: looprig diff t4^ t4. A:PATH narrows to one file.",
  ],
  run: async (context, { options, operands, rest }) => {
    const [a, b] = operands.map((given, i) => refArgument(i === 0 ? "A" : "B", given));
    const named = pathOf(a, b);
    if (named !== undefined && rest !== undefined) {
      throw usage("PATH", 'Cannot use paths after "--" here: the refs name one already', "one of both");
    }
    if (a !== undefined && context.globals.session !== undefined) {
      throw usage("--session", "Cannot use --session with A: it narrows only which turn is the last", "no --session");
    }
    return withPlace(context, async (place) => {
      const paths = named === undefined ? pathArguments(rest, place) : [named];
      if (a !== undefined) assertKnown(context, place, a.ref);
      return withView(context, place, async (view) => {
        const { globals, signal, style } = context;
        const history = await view.history({ signal });
        const span =
          a === undefined ? lastTurn(history, sessionOf(context, history)) : { from: a.ref, to: b?.ref ?? "now" };
        const asked = span !== undefined && "turn" in span ? { turn: span.turn } : span;
        if (span === undefined) {
          if (globals.json) await context.document("diff", place.root, diffDocument("now", "now", []));
          else if (!place.choice.known) await sayWithoutHistory(context, place);
          else await context.say("No turn here has changed anything.\n");
          return exit.nothing;
        }
        await sayWhere(context, place);
        const [from, to] = [await view.resolve(span.from, { signal }), await view.resolve(span.to, { signal })];
        await assertPathsKnown(context, place, view, paths, {
          ...{ action: "diff", refs: [span.from, span.to] },
          named: [...new Set([span.from, span.to])].map((ref) => (ref === "now" ? "here" : ref)).join(" or "),
        });
        const diffs: FileDiff[] = [];
        for await (const diff of view.diff({ ...asked, paths, signal })) {
          if (globals.json || options.stat) diffs.push(diff);
          else await context.print(colourDiff(await diff.text(), style));
          if (context.environment.stdout.closed) break;
        }
        if (globals.json) await context.document("diff", place.root, diffDocument(from.ref, to.ref, diffs));
        else if (options.stat) await context.print(statText(diffs, style));
        return exit.done;
      });
    });
  },
});

function pathOf(a: RefArgument | undefined, b: RefArgument | undefined): RefArgument["path"] {
  if (a?.path !== undefined && b?.path !== undefined && a.path !== b.path) {
    throw usage("B", "Cannot compare two different paths: wanted the same one in A and B", "the same path in A and B");
  }
  return a?.path ?? b?.path;
}

/** The newest turn that changed something: what it changed itself, between its start and its end. */
function lastTurn(
  history: RootHistory,
  session: string | undefined,
): { readonly turn: string; readonly from: string; readonly to: string } | undefined {
  const turn = history.turns.findLast(
    (each) =>
      (session === undefined || each.sessionId === session) &&
      each.from !== undefined &&
      each.to !== undefined &&
      (each.kind === "command" ? each.from !== each.to : each.changed > 0),
  );
  const name = turn === undefined ? undefined : `t${turn.number}`;
  return name === undefined ? undefined : { turn: name, from: `${name}^`, to: name };
}
