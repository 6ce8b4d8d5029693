/** The texts of `--help`. Pure. */
import type { OptionSpec, OptionSpecs } from "./args.js";
import { columns } from "./columns.js";
import { globalOptions } from "./global-options.js";

/** Left column, what it does, its own options. */
const surface: readonly (readonly [string, string, string])[] = [
  ["run [PROMPT]", "an agent here", "--model M --continue --allow bash"],
  ["exec [opts] -- CMD…", "any command or agent here", "--every 60s --undo-on-failure"],
  ["status", "what changed since the last checkpoint, and by whom", ""],
  ["log", "turns and checkpoints, newest first", "-n 20 --all"],
  ["diff [A] [B]", "default: the last turn", "--stat  -- PATH…"],
  ["show REF[:PATH]", "one checkpoint, or one file in it", ""],
  ["undo [TURN]", "take back what the last turn changed", "--dry-run --skip-conflicts -- PATH…"],
  ["redo", "put it back", "--dry-run --skip-conflicts"],
  ["restore REF", "make files as they were", "--dry-run --exact --to DIR -- PATH…"],
  ["snapshot [-m LABEL]", "checkpoint now", ""],
  ["sessions [rm ID]", "list; delete with their space", "--sizes"],
  ["gc", "give space back; let old checkpoints go", "--now --keep-last N --keep-within 30d"],
  ["verify [REF…]", "read everything kept, and check it", "--all"],
  ["doctor", "look at everything, and say what is wrong", ""],
];

export function overviewHelp(): string {
  return [
    "looprig — undo for agents and scripts",
    "",
    ...columns(surface, { indent: "  ", gap: ["   ", "   "] }),
    "",
    "run, exec, snapshot:  --exclude GLOB (kept with the root)  --allow-large      run, exec:  --shared",
    "run:  --base-url URL  --resume ID  --system FILE; without PROMPT it reads stdin",
    "status, log, diff, undo, redo, sessions:  --session ID",
    "Everywhere: --root DIR  --json  --yes  --adopt-root  -q/--quiet  --no-color  -h/--help  --version",
    "",
    "REF is c12 (a checkpoint), t4 (the end of a turn), t4^ (its start), last, now, a label, or eight or more hex digits.",
    "State: $LOOPRIG_HOME, else $XDG_STATE_HOME/looprig or ~/.local/state/looprig (Linux),",
    "~/Library/Application Support/looprig (macOS); mode 0700.",
    "stdout is data, stderr is talk. run prints the answer to stdout, all else to stderr.",
    '--json: one document with "schema":"looprig.<command>/1"; run --json: one event per line.',
    "Exit: 0 done · 1 failed · 2 usage, or consent needed and no terminal · 3 nothing to do · 4 conflict, nothing written ·",
    "5 busy · 6 refused for safety · 130 interrupted. exec: the command's own; 125 for any refusal or failure of ours,",
    "126 and 127 as env uses them.",
    "",
    "looprig <command> --help says more. Start with: looprig exec -- <command>",
  ]
    .map((line) => `${line}\n`)
    .join("");
}

export function commandHelp(command: {
  readonly usage: string;
  readonly summary: string;
  readonly grammar: { readonly options: OptionSpecs };
  readonly narrows: boolean;
  readonly json?: string | undefined;
  readonly notes: readonly string[];
}): string {
  const own = Object.values(command.grammar.options);
  const { session, ...rest } = globalOptions;
  const others = { ...rest, json: { ...rest.json, help: command.json ?? rest.json.help } };
  return [
    `looprig ${command.usage}`,
    `  ${command.summary}`,
    ...(own.length === 0 ? [] : ["", ...optionLines(own)]),
    "",
    "Everywhere:",
    ...optionLines([...Object.values(others), ...(command.narrows ? [session] : [])]),
    ...command.notes.flatMap((note) => ["", ...wrap(note, 100)]),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

const optionLines = (options: readonly OptionSpec[]): string[] =>
  columns(
    options.map((option) => [
      `${option.names.join(", ")}${option.kind === "flag" ? "" : ` ${option.value}`}`,
      option.help,
    ]),
    { indent: "  ", least: [24] },
  );

function wrap(paragraph: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
