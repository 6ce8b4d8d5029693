/** `restore --to DIR`: the files of a snapshot, written where nothing stands yet. It replaces nothing, so it asks nothing. */
import { displayName, isWithin } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { usage } from "./args.js";
import { bytes, count } from "./amounts.js";
import type { Context } from "./context.js";
import { exit } from "./exit-codes.js";
import { assertPathsKnown } from "./known-paths.js";
import { withView } from "./place.js";
import type { Place } from "./place.js";
import { oneLine, shellWord } from "./spelling.js";
import { listTree } from "./tree-listing.js";

export interface Elsewhere {
  readonly ref: string;
  readonly paths: readonly WorkspacePath[] | undefined;
  readonly to: string;
  readonly dryRun: boolean;
}

export async function writeElsewhere(context: Context, place: Place, wish: Elsewhere): Promise<number> {
  const { canonicalPath } = await import("../workspace/index.js");
  const { fileSystem } = context.environment;
  const dest = canonicalPath(wish.to, { fileSystem, cwd: place.here, option: "--to" });
  if (dest === place.root) {
    throw usage(
      "--to",
      `Cannot use ${JSON.stringify(wish.to)} for --to: it is the root itself; leave --to out to restore in place`,
      "another directory",
    );
  }
  return withView(context, place, async (view) => {
    const { signal } = context;
    const resolved = await view.resolve(wish.ref, { signal });
    const from = resolved.checkpoint === undefined ? wish.ref : `c${resolved.checkpoint.number}`;
    await assertPathsKnown(context, place, view, wish.paths, { action: "restore", refs: [wish.ref], named: from });
    const written: WorkspacePath[] = [];
    const omitted: WorkspacePath[] = [];
    for await (const { path, entry } of listTree(await view.tree(wish.ref, { signal }))) {
      if (wish.paths?.some((each) => isWithin(path, each)) === false) continue;
      if (entry.kind === "omitted") omitted.push(path);
      else if (entry.kind !== "directory") written.push(path);
    }
    const fields = {
      ...{ action: "restore", entry: from, dryRun: wish.dryRun, result: "done", to: dest, written, deleted: [] },
      ...{ kept: [], conflicts: [], omitted, safety: null, reverse: null },
    };
    if (wish.dryRun) {
      if (context.globals.json) await context.document("restore", place.root, fields);
      else
        await context.print(
          `${count(written.length, "file")} of ${oneLine(from)} to write to ${displayName(dest)}. Nothing was written.\n`,
        );
      return exit.done;
    }
    const done = await view.materialize(wish.ref, dest, { paths: wish.paths, signal });
    if (context.globals.json) await context.document("restore", place.root, fields);
    else {
      const left =
        omitted.length === 0
          ? ""
          : ` ${count(omitted.length, "path")} ${omitted.length === 1 ? "was never captured and is" : "were never captured and are"} not there.`;
      await context.report(
        `${count(written.length, "file")} of ${oneLine(from)} written to ${shellWord(dest)}, ${bytes(done.bytes)}.${left}\n`,
      );
    }
    return exit.done;
  });
}
