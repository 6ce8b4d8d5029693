/** `restore` into a root that is gone: nothing stands there to be replaced, so what is asked is only whether to build it. */
import { LooprigError, isMissing } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import type { ResolvedRef } from "../workspace/index.js";
import { count } from "./amounts.js";
import { usage } from "./args.js";
import { ask } from "./ask.js";
import type { Context } from "./context.js";
import { receiptDocument } from "./documents.js";
import { exit } from "./exit-codes.js";
import { withView, withWorkspace } from "./place.js";
import type { Place } from "./place.js";
import { oneLine, shellWord } from "./spelling.js";

export interface Rebuilding {
  readonly ref: string;
  readonly paths: readonly WorkspacePath[] | undefined;
  readonly dryRun: boolean;
}

export function isGone({ environment }: Context, { root }: Place): boolean {
  try {
    environment.fileSystem.lstat(root);
    return false;
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}

export async function rebuild(context: Context, place: Place, { ref, paths, dryRun }: Rebuilding): Promise<number> {
  const { globals, signal } = context;
  const root = context.displayRoot(place.root);
  if (paths !== undefined) {
    throw usage(
      "PATH",
      `Cannot restore single paths of ${root}: it is gone; build it again first, or use --to`,
      "no paths",
      `looprig restore ${shellWord(ref)} --root ${shellWord(place.root)}`,
    );
  }
  const resolved = await withView(context, place, async (view) => view.resolve(ref, { signal }));
  const name = nameOf(resolved);
  const files = resolved.checkpoint === undefined ? "" : `, ${count(resolved.checkpoint.files, "file")}`;
  if (dryRun) {
    if (globals.json) await context.document("restore", place.root, dryDocument(name));
    else await context.print(`${root} is gone; it would be built again from ${name}${files}. Nothing was written.\n`);
    return exit.done;
  }
  if (!globals.yes) {
    if (!context.canAsk) {
      throw new LooprigError(
        "consent.needed",
        `Cannot build ${root} again without a yes: it is gone, and there is no terminal to ask on`,
        { action: "restore" },
        { hint: "--yes answers it" },
      );
    }
    if (!(await ask(context, { text: `${root} is gone. Build it again from ${name}${files}?`, default: "no" }))) {
      await context.say("Nothing was written.\n");
      if (globals.json) {
        await context.document("restore", place.root, { ...dryDocument(name), dryRun: false, result: "refused" });
      }
      return exit.failed;
    }
  }
  const opening = { command: `restore ${ref}`, missingRoot: "recreate" } as const;
  return withWorkspace(context, place, opening, async (workspace) => {
    const receipt = await workspace.restore(ref, { signal });
    if (globals.json) await context.document("restore", place.root, receiptDocument(receipt));
    else await context.report(`${root} is built again from ${name}${files}.\n`);
    return exit.done;
  });
}

const dryDocument = (entry: string): object => ({
  ...{ action: "restore", entry, dryRun: true, result: "done", rebuild: true, written: [], deleted: [] },
  ...{ kept: [], conflicts: [], omitted: [], safety: null, reverse: null },
});

const nameOf = ({ checkpoint, given }: ResolvedRef): string =>
  checkpoint === undefined ? oneLine(given) : `c${checkpoint.number}`;
