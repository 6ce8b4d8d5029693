import { isEscapedName } from "../../core/index.js";
import { flag, usage, value } from "../args.js";
import { captureOptions, captureSettings } from "../capture-options.js";
import { defineCommand } from "../command.js";
import { currentDirectoryGone } from "../current-directory.js";
import { parseDuration } from "../duration.js";
import { execDocument } from "../documents.js";
import { isDirectory, withPlace, withWorkspace } from "../place.js";
import { Progress } from "../progress.js";
import { coverageLine, execLine } from "../render-exec.js";
import { oneLine } from "../spelling.js";

const everyMsMin = 100;
const everyMsMax = 24 * 3_600_000;

export const command = defineCommand({
  grammar: {
    command: "exec",
    options: {
      every: value(["--every"], {
        value: "60s",
        wanted: "a duration from 100ms to 24h such as 60s, or 0 for never",
        parse: (given) => {
          const ms = parseDuration(given);
          return ms === 0 || (ms !== undefined && ms >= everyMsMin && ms <= everyMsMax) ? ms : undefined;
        },
        help: "checkpoint this often while it runs, if something changed; 0 is off; default 60s",
      }),
      undoOnFailure: flag(["--undo-on-failure"], "take everything back unless the command exits 0"),
      shared: flag(["--shared"], "take no lease: people and other sessions write here too"),
      ...captureOptions,
    },
    operands: [],
    required: 0,
    rest: "command",
  },
  usage: "exec [--every 60s] [--undo-on-failure] [--shared] [--exclude GLOB] [--allow-large] -- CMD…",
  summary: "run any command or agent here; looprig undo takes back what it changed",
  narrows: false,
  json: "its line as one JSON document, on stderr",
  notes: [
    "looprig brings files back; it does not stop a command from leaving the directory. .git is git's to keep: it is neither captured nor restored. Captured files, secrets among them, are copied to the state directory.",
    "The command gets this terminal as it is, starts in the current directory where that lies inside the root (else in the root), and finds LOOPRIG_ROOT and LOOPRIG_SESSION in its environment. Before it starts, the whole root is captured; after it ends, what changed. One line on stderr says so, only when files changed; nothing of ours is written to stdout.",
    "Exit: the command's own status; 125 when looprig refuses or fails, 126 when the command cannot be run, 127 when it does not exist.",
  ],
  run: async (context, { options, rest = [] }) => {
    const [program, ...args] = rest;
    const unspeakable = rest.find(isEscapedName);
    if (program === undefined || unspeakable !== undefined) {
      throw usage(
        "CMD",
        `Cannot pass on ${JSON.stringify(unspeakable ?? "")}: it holds bytes that are not UTF-8; wanted text, or a script that names the file`,
        "words of UTF-8 text",
      );
    }
    const { environment, globals, interrupts, signal, talkStyle } = context;
    return withPlace(
      context,
      async (place) => {
        if (!isDirectory(context, place.here)) throw currentDirectoryGone(place.here);
        const progress = new Progress(environment.stderr, "looprig: baseline", globals.quiet, undefined, {
          first: !place.choice.known,
        });
        const opening = {
          command: `exec "${oneLine([program, ...args].join(" "))}"`,
          shared: options.shared,
          capture: captureSettings(options),
          onProgress: progress.report,
        };
        return withWorkspace(context, place, opening, async (workspace) => {
          const inside =
            place.here === place.root || place.here.startsWith(place.root === "/" ? "/" : `${place.root}/`);
          const result = await workspace.exec([program, ...args], {
            ...{ foreground: true, everyMs: options.every, undoOnFailure: options.undoOnFailure, signal },
            cwd: inside ? place.here : place.root,
            includeWindow: globals.yes,
            onSpawn: () => {
              // From here on the terminal and its signals are the command's.
              interrupts.disarm();
              void progress.done();
            },
          });
          if (globals.json) {
            const document = {
              schema: "looprig.exec/1",
              root: place.root,
              ...execDocument(workspace.sessionId, result),
            };
            await environment.stderr.write(`${JSON.stringify(document)}\n`);
            return result.exitCode;
          }
          await context.say(execLine(result, options.undoOnFailure, talkStyle));
          if (result.changes.length > 0 && !globals.quiet && (await workspace.firstChangeNotice())) {
            await context.say(coverageLine(place.root, environment.home));
          }
          return result.exitCode;
        }).finally(() => progress.done());
      },
      { begins: true },
    );
  },
});
