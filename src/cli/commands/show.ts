import { defineCommand } from "../command.js";
import { showDocument } from "../documents.js";
import { exit } from "../exit-codes.js";
import { assertKnown, withPlace, withView } from "../place.js";
import { refArgument } from "../ref-argument.js";
import { entryLine } from "../render-show.js";
import { listTree } from "../tree-listing.js";
import type { ListedEntry } from "../tree-listing.js";
import { usage } from "../args.js";

export const command = defineCommand({
  grammar: { command: "show", options: {}, operands: ["REF[:PATH]"], required: 1, rest: "none" },
  usage: "show REF[:PATH]",
  summary: "list one checkpoint, or write one file of it to stdout",
  narrows: false,
  notes: [
    "REF is c12, t4, t4^, last, now, a label, or eight or more hex digits. PATH is relative to the root; the quoted spelling looprig prints is understood too. A file's bytes are written as they are, each piece after it was verified.",
  ],
  run: async (context, { operands: [given = ""] }) => {
    const { globals, signal, style } = context;
    const { ref, path } = refArgument("REF", given);
    if (path !== undefined && globals.json) {
      throw usage(
        "--json",
        "Cannot show a file as JSON: its bytes are written as they are; leave --json out",
        "no --json",
      );
    }
    return withPlace(context, async (place) => {
      if (ref !== "now") assertKnown(context, place, ref);
      return withView(context, place, async (view) => {
        if (path !== undefined) {
          for await (const piece of view.readFile(ref, path, { signal })) {
            await context.print(piece);
            if (context.environment.stdout.closed) break;
          }
          return exit.done;
        }
        const resolved = await view.resolve(ref, { signal });
        const tree = await view.tree(ref, { signal });
        if (globals.json) {
          const listed: ListedEntry[] = [];
          for await (const each of listTree(tree)) listed.push(each);
          await context.document(
            "show",
            place.root,
            showDocument({ checkpoint: resolved.checkpoint, ref: tree.ref }, listed),
          );
          return exit.done;
        }
        let lines = "";
        for await (const each of listTree(tree)) {
          lines += entryLine(each, style);
          if (lines.length < pageChars) continue;
          await context.print(lines);
          lines = "";
          if (context.environment.stdout.closed) return exit.done;
        }
        await context.print(lines);
        return exit.done;
      });
    });
  },
});

/** Lines are written in pieces of about this size: one write per line would be slow, one for a large tree too big. */
const pageChars = 64 * 1024;
