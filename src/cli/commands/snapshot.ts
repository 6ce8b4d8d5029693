import { value } from "../args.js";
import { captureOptions, captureSettings } from "../capture-options.js";
import { defineCommand } from "../command.js";
import { snapshotDocument } from "../documents.js";
import { exit } from "../exit-codes.js";
import { sayWhere, withPlace, withWorkspace } from "../place.js";
import { Progress } from "../progress.js";
import { snapshotText } from "../render-snapshot.js";
import { listOmitted } from "../tree-listing.js";

/** One line, since it stands in the log, and nothing that would be read as another ref (G7): it could never be asked for again. */
function labelText(given: string): string | undefined {
  const unreachable = /^-|:|^(?:[ct][1-9]\d*\^?|now|last|[0-9a-f]{8,64})$/;
  const unreadable = /[\p{Cc}\ufffd]|[\ud800-\udfff]/u;
  if (given.trim() === "" || given.length > 200) return undefined;
  return unreachable.test(given) || unreadable.test(given) ? undefined : given;
}

export const command = defineCommand({
  grammar: {
    command: "snapshot",
    options: {
      label: value(["-m"], {
        value: "LABEL",
        wanted:
          "a label of 1 to 200 characters that reads as nothing else: not c12, t4, now, last or hex digits, no colon",
        parse: labelText,
        help: "a name to find it by",
      }),
      ...captureOptions,
    },
    operands: [],
    required: 0,
    rest: "none",
  },
  usage: "snapshot [-m LABEL] [--exclude GLOB] [--allow-large]",
  summary: "checkpoint now",
  narrows: false,
  notes: ["Everything below the root is captured, secrets among it, into the state directory; .git is not."],
  run: async (context, { options }) =>
    withPlace(
      context,
      async (place) => {
        await sayWhere(context, place);
        const { json, quiet } = context.globals;
        const progress = new Progress(context.environment.stderr, "looprig: snapshot", quiet, undefined, {
          first: !place.choice.known,
        });
        const opening = { command: "snapshot", capture: captureSettings(options), onProgress: progress.report };
        return withWorkspace(context, place, opening, async (workspace) => {
          const { signal } = context;
          const taken = await workspace.checkpoint({ label: options.label, signal });
          await progress.done();
          if (json) {
            const omitted = await listOmitted(await workspace.tree(taken.ref, { signal }));
            await context.document("snapshot", place.root, snapshotDocument(taken, omitted));
          } else await context.report(snapshotText(taken, context.style));
          return exit.done;
        }).finally(() => progress.done());
      },
      { begins: true },
    ),
});
