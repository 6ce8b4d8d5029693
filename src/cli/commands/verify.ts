import type { SnapshotRef } from "../../core/index.js";
import type { WorkspaceView } from "../../workspace/index.js";
import { bytes, count, number } from "../amounts.js";
import { flag, usage } from "../args.js";
import { defineCommand } from "../command.js";
import type { Context } from "../context.js";
import { exit } from "../exit-codes.js";
import { pinnedTrees } from "../pin-names.js";
import type { PinnedTree } from "../pin-names.js";
import { assertKnown, sayWithoutHistory, withPlace, withView } from "../place.js";
import type { Place } from "../place.js";
import { Progress } from "../progress.js";
import { refArgument } from "../ref-argument.js";
import { verifyDocument, verifyText } from "../render-verify.js";

export const command = defineCommand({
  grammar: {
    command: "verify",
    options: { all: flag(["--all"], "everything in the store, of every root") },
    operands: ["REF…"],
    required: 0,
    rest: "none",
  },
  usage: "verify [REF…] [--all]",
  summary: "read everything that is kept for this root, and check every byte of it",
  narrows: false,
  notes: [
    "Without REF every checkpoint of the root is read, and what is kept for undo besides. Damage is named by path, with the checkpoints it belongs to. Nothing is changed.",
    "Exit: 0 everything is sound, 1 something is damaged or missing.",
  ],
  run: async (context, { options, operands }) => {
    if (options.all && operands.length > 0) {
      throw usage("--all", "Cannot use --all with a REF: it reads everything anyhow; leave one out", "one of both");
    }
    return withPlace(context, async (place) => {
      const [first] = operands;
      if (first !== undefined) assertKnown(context, place, first);
      else if (!options.all && !place.choice.known && !context.globals.json) {
        await sayWithoutHistory(context, place);
        return exit.nothing;
      }
      const trees = await treesMeant(context, place, { all: options.all, operands });
      return verify(context, place, trees, options.all);
    });
  },
});

async function treesMeant(
  context: Context,
  place: Place,
  { all, operands }: { readonly all: boolean; readonly operands: readonly string[] },
): Promise<readonly PinnedTree[]> {
  const [{ listSessions }, { createWorkspaceStore }] = await Promise.all([
    import("../../workspace/index.js"),
    import("../../workspace-store/index.js"),
  ]);
  const { signal } = context;
  const pins = await createWorkspaceStore(place.storage).pins({ signal });
  const pinned = pinnedTrees(pins, await listSessions(place.storage, { signal }));
  const here = pinned.filter(({ root }) => all || root === place.root);
  if (operands.length === 0) return here;
  return withView(context, place, async (view) => {
    const meant: PinnedTree[] = [];
    for (const given of operands) {
      const ref = await storedRef(view, given, signal);
      const named = here.filter((tree) => tree.ref === ref);
      // A tree that nothing keeps is looked at all the same.
      meant.push(...(named.length > 0 ? named : [{ ref, root: place.root, owner: "", checkpoint: undefined }]));
    }
    return meant;
  });
}

async function storedRef(view: WorkspaceView, given: string, signal: AbortSignal): Promise<SnapshotRef> {
  const { ref, path } = refArgument("REF", given);
  if (path !== undefined) {
    throw usage("REF", `Cannot verify ${JSON.stringify(given)}: a whole checkpoint is read; leave the path out`, "REF");
  }
  if (ref === "now") throw usage("REF", 'Cannot verify "now": it is not stored; looprig snapshot stores it', "REF");
  // Opened, so that one that was dropped is refused as that.
  return (await view.tree(ref, { signal }).catch(missingIsDamage(view, ref, signal))).ref;
}

/** A tree whose first object is damaged or gone cannot be opened; that is what verification is there to say. */
const missingIsDamage =
  (view: WorkspaceView, ref: string, signal: AbortSignal) =>
  async (error: unknown): Promise<{ readonly ref: SnapshotRef }> => {
    const { isLooprigError } = await import("../../core/index.js");
    if (!isLooprigError(error, "snapshot.unknown", "snapshot.object_missing", "snapshot.object_damaged")) throw error;
    const resolved = await view.resolve(ref, { signal });
    return { ref: resolved.ref as SnapshotRef };
  };

async function verify(
  context: Context,
  { storage, root }: Place,
  trees: readonly PinnedTree[],
  all: boolean,
): Promise<number> {
  const { createWorkspaceStore } = await import("../../workspace-store/index.js");
  const { environment, globals, signal, style } = context;
  const progress = new Progress(environment.stderr, "looprig: verify", globals.quiet);
  const refs = [...new Set(trees.map(({ ref }) => ref))];
  const report = await createWorkspaceStore(storage)
    .verify({
      ...{ refs, signal },
      onProgress: ({ objects, bytes: read, estimate }) =>
        progress.show(
          estimate === undefined
            ? `${count(objects, "object")}, ${bytes(read)} read`
            : `${number(objects)} of ${count(estimate.objects, "object")}, ${bytes(read)} of ${bytes(estimate.bytes)} read`,
        ),
    })
    .finally(() => progress.done());
  const data = { report, trees, root: all ? undefined : root };
  if (globals.json) await context.document("verify", all ? null : root, verifyDocument(data));
  else await context.print(verifyText(data, { home: environment.home, style }));
  return report.damaged.length === 0 ? exit.done : exit.failed;
}
