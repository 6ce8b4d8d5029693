import { LooprigError, isMissing } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";
import type { ResolvedRef, RestoreAction } from "../../workspace/index.js";
import { act } from "../act.js";
import { count } from "../amounts.js";
import { flag, text, usage, value } from "../args.js";
import { ask } from "../ask.js";
import { defineCommand } from "../command.js";
import type { Context } from "../context.js";
import { exit } from "../exit-codes.js";
import { pathArguments } from "../path-arguments.js";
import { assertKnown, sayWhere, withPlace, withView } from "../place.js";
import type { Place } from "../place.js";
import { refArgument } from "../ref-argument.js";
import { writeElsewhere } from "../restore-elsewhere.js";

export const command = defineCommand({
  grammar: {
    command: "restore",
    options: {
      dryRun: flag(["--dry-run"], "show what it would do; change nothing"),
      exact: flag(["--exact"], "also replace and delete what looprig did not write; lists those paths first"),
      to: value(["--to"], {
        value: "DIR",
        wanted: "an absent or empty directory",
        parse: text,
        help: "write the files there instead, into an absent or empty directory",
      }),
    },
    operands: ["REF"],
    required: 1,
    rest: "paths",
  },
  usage: "restore REF [--dry-run] [--exact] [--to DIR] [-- PATH…]",
  summary: "make files as they were in a checkpoint",
  narrows: false,
  notes: [
    "REF is c12, t4, t4^, last, a label, or eight or more hex digits; REF:PATH names one file. Files that no record of looprig explains are kept and listed, unless --exact. .git is never written.",
    "A root that is gone is built again, after a question or with --yes. What was there before is kept: looprig undo takes a restore back.",
  ],
  run: async (context, { options, operands: [given = ""], rest }) => {
    if (options.to !== undefined && options.exact) {
      throw usage(
        "--exact",
        "Cannot use --exact with --to: an empty directory has nothing to replace; leave it out",
        "no --exact",
      );
    }
    return withPlace(context, async (place) => {
      const { ref, path } = refArgument("REF", given);
      if (path !== undefined && rest !== undefined) {
        throw usage(
          "PATH",
          `Cannot use paths after "--" with ${JSON.stringify(given)}: it names one already`,
          "one of both",
        );
      }
      const paths = path === undefined ? pathArguments(rest, place) : [path];
      assertKnown(context, place, ref);
      await sayWhere(context, place);
      if (options.to !== undefined) {
        return writeElsewhere(context, place, { ref, paths, to: options.to, dryRun: options.dryRun });
      }
      const deed = {
        dryRun: options.dryRun,
        title: `restore ${given}`,
        ref,
        action: (): RestoreAction => ({ kind: "restore", ref, paths, exact: options.exact, includeWindow: true }),
      };
      if (!isGone(context, place)) return act(context, place, deed);
      const agreed = await agreeToRebuild(context, place, { ref, paths, dryRun: options.dryRun });
      return agreed === "yes" ? act(context, place, { ...deed, recreate: true }) : agreed;
    });
  },
});

function isGone({ environment }: Context, { root }: Place): boolean {
  try {
    environment.fileSystem.lstat(root);
    return false;
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}

/** A root that is gone has nothing a plan could be shown against: what is asked is whether to build it. */
async function agreeToRebuild(
  context: Context,
  place: Place,
  wish: { readonly ref: string; readonly paths: readonly WorkspacePath[] | undefined; readonly dryRun: boolean },
): Promise<"yes" | number> {
  const resolved = await withView(context, place, async (view) => view.resolve(wish.ref, { signal: context.signal }));
  const root = context.displayRoot(place.root);
  const from = `${nameOf(resolved)}${wish.paths === undefined && resolved.checkpoint !== undefined ? `, ${count(resolved.checkpoint.files, "file")}` : ""}`;
  if (wish.dryRun) {
    if (context.globals.json) {
      const none = { written: [], deleted: [], kept: [], conflicts: [], omitted: [], safety: null, reverse: null };
      await context.document("restore", place.root, {
        ...{ action: "restore", entry: nameOf(resolved), dryRun: true, result: "done", rebuild: true },
        ...none,
      });
    } else await context.print(`${root} is gone; it would be built again from ${from}. Nothing was written.\n`);
    return exit.done;
  }
  if (context.globals.yes) return "yes";
  if (!context.canAsk) {
    throw new LooprigError(
      "consent.needed",
      `Cannot build ${root} again without a yes: it is gone, and there is no terminal to ask on`,
      { action: "restore" },
      { hint: `looprig restore ${wish.ref} --root ${place.root} --yes` },
    );
  }
  if (await ask(context, { text: `${root} is gone. Build it again from ${from}?`, default: "no" })) return "yes";
  await context.say("Nothing was written.\n");
  return exit.failed;
}

const nameOf = ({ checkpoint, given }: ResolvedRef): string =>
  checkpoint === undefined ? given : `c${checkpoint.number}`;
