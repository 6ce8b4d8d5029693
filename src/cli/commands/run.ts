import path from "node:path";
import { isEscapedName } from "../../core/index.js";
import type { LanguageModel } from "../../loop/index.js";
import type { SessionSummary } from "../../session-store/index.js";
import { count } from "../amounts.js";
import { flag, list, text, usage, value } from "../args.js";
import type { OptionValues } from "../args.js";
import { captureOptions, captureSettings } from "../capture-options.js";
import { fit } from "../columns.js";
import { defineCommand } from "../command.js";
import type { Context } from "../context.js";
import { exit } from "../exit-codes.js";
import { loadModel, readGiven } from "../load-model.js";
import { chooseModel, parseBaseUrl } from "../model-choice.js";
import { withPlace } from "../place.js";
import type { Place } from "../place.js";
import { runAgent } from "../run-agent.js";
import type { AgentSession } from "../run-agent.js";
import { sessionNames } from "../session-names.js";
import { oneLine, shellWord } from "../spelling.js";
import { namedAgent, newestAgent } from "../stored-agent.js";
import type { StoredAgent } from "../stored-agent.js";
import { systemText } from "../system-text.js";

const promptBytesMax = 4 * 1024 * 1024;
const systemBytesMax = 1024 * 1024;
/** The name of the one loop: part of what a session is resumed with. */
const loopName = "operator";

const runOptions = {
  model: value(["--model"], {
    value: "PROVIDER/NAME",
    wanted: "PROVIDER/NAME, a NAME with --base-url, or script:FILE",
    parse: text,
    help: "default $LOOPRIG_MODEL; NAME alone with --base-url; script:FILE plays a script",
  }),
  baseUrl: value(["--base-url"], {
    value: "URL",
    wanted: "an address such as http://localhost:11434/v1",
    parse: parseBaseUrl,
    help: "a server that speaks the OpenAI-compatible protocol; its key is $LOOPRIG_API_KEY",
  }),
  allow: list(["--allow"], {
    value: "bash",
    wanted: "bash",
    parse: (given) => (given === "bash" ? given : undefined),
    help: "run shell commands without asking",
  }),
  continue: flag(["--continue"], "go on with the newest session here"),
  resume: value(["--resume"], {
    value: "ID",
    wanted: "four or more characters of a session id",
    parse: (given) => (/^[0-9a-f][0-9a-f-]{3,35}$/.test(given) ? given : undefined),
    help: "go on with this session",
  }),
  system: value(["--system"], {
    value: "FILE",
    wanted: "a text file",
    parse: text,
    help: "instructions for the agent, after those of AGENTS.md",
  }),
  shared: flag(["--shared"], "take no lease: people and other sessions write here too"),
  ...captureOptions,
} as const;
type RunValues = OptionValues<typeof runOptions>;

export const command = defineCommand({
  grammar: { command: "run", options: runOptions, operands: ["PROMPT"], required: 0, rest: "none" },
  usage:
    "run [PROMPT] [--model PROVIDER/NAME] [--base-url URL] [--allow bash] [--continue | --resume ID] [--system FILE]",
  summary: "an agent here, with tools for files and a shell; looprig undo takes back what it changed",
  narrows: false,
  json: "the session's events, one JSON document per line",
  notes: [
    "looprig brings files back; it does not stop a command from leaving the directory. .git is git's to keep: it is neither captured nor restored. Captured files, secrets among them, are copied to the state directory.",
    "Without PROMPT it is read from stdin. The model's provider is the package @ai-sdk/PROVIDER, installed beside looprig and never taken from the directory the agent works in; its key is where that package looks for it, as in ANTHROPIC_API_KEY. The agent reads AGENTS.md of the root.",
    "File tools work inside the root and ask nothing: what they change can be undone. Shell commands are asked about on a terminal (y once, a always in this session, n no, n REASON no and why) and refused without one; --yes does not answer for them, --allow bash does.",
    "Only the answer is written to stdout. The first Ctrl-C interrupts the turn and keeps the session, the second stops at once.",
    'script:FILE asks no server: it plays a JSON array of steps, each a text, calls of tools, or both. A first and a last one: [{"calls":[{"tool":"Read","input":{"file_path":"a.txt"}}]},{"text":"Done."}]',
  ],
  run: async (context, { options, operands: [given] }) => {
    const { environment } = context;
    if (options.continue && options.resume !== undefined) {
      throw usage(
        "--resume",
        "Cannot use --continue with --resume: each names a session; leave one out",
        "one of both",
      );
    }
    const resumes = options.continue || options.resume !== undefined;
    const choice = chooseModel(options, environment.env);
    const prompt = await readPrompt(context, given, resumes);
    const more =
      options.system === undefined
        ? undefined
        : readGiven(environment.fileSystem, path.resolve(environment.cwd, options.system), "--system", systemBytesMax);
    return withPlace(
      context,
      async (place) => {
        const { listSessions } = await import("../../workspace/index.js");
        const sessions = await listSessions(place.storage, { signal: context.signal });
        const stored = resumes ? await findStored(context, place, options, sessions) : undefined;
        if (prompt === undefined && stored?.waiting === undefined) throw noPrompt();
        const model = await loadModel(choice, environment);
        const system = systemText(environment.fileSystem, place.root, more);
        const { createSessionStore } = await import("../../session-store/index.js");
        await runAgent(context, {
          ...{ stored, prompt, root: place.root, allowed: options.allow.length > 0 },
          store: createSessionStore(place.storage),
          open: () => open(context, place, options, { model, system: system.text, stored, prompt }),
          onward: onward(options),
          place: (session) => placeText(context, place, session, sessions, stored),
          notes: system.problem === undefined ? [] : [`AGENTS.md was not read: ${system.problem}`],
        });
        return exit.done;
      },
      { begins: !resumes },
    );
  },
});

/** The prompt, from the command line or from what is piped in; undefined where a session that waits for an answer needs none. */
async function readPrompt(context: Context, given: string | undefined, resumes: boolean): Promise<string | undefined> {
  const { stdin } = context.environment;
  const piped = given === "-" || given === undefined;
  if (piped && stdin.terminal) {
    if (resumes && given === undefined) return undefined;
    throw noPrompt();
  }
  let prompt = given ?? "";
  if (piped) {
    const bytes = await stdin.readAll(promptBytesMax, context.signal);
    if (bytes === undefined) {
      throw usage(
        "PROMPT",
        `Cannot use the prompt: it is longer than ${promptBytesMax} bytes; put it into a file of the directory and name that`,
        "a shorter prompt",
      );
    }
    prompt = bytes.toString("utf8");
  }
  if (isEscapedName(prompt)) {
    throw usage("PROMPT", "Cannot use the prompt: it holds bytes that are not UTF-8", "a prompt of UTF-8 text");
  }
  if (prompt.trim() !== "") return prompt;
  if (resumes && given === undefined) return undefined;
  throw noPrompt();
}

const noPrompt = (): Error =>
  usage(
    "PROMPT",
    "Cannot run without a prompt: wanted it as an argument, or on stdin",
    "a prompt",
    'looprig run "make the tests pass"',
  );

async function findStored(
  context: Context,
  { storage, root }: Place,
  { resume }: RunValues,
  sessions: readonly SessionSummary[],
): Promise<StoredAgent> {
  const { signal } = context;
  return resume === undefined
    ? newestAgent(storage, root, sessions, context.displayRoot(root), { signal })
    : namedAgent(resume, storage, root, sessions, { signal });
}

interface Opening {
  readonly model: LanguageModel;
  readonly system: string;
  readonly stored: StoredAgent | undefined;
  readonly prompt: string | undefined;
}

/** The public rig: one loop with the built-in tools, in this root. */
async function open(
  context: Context,
  { storage, root }: Place,
  options: RunValues,
  { model, system, stored, prompt }: Opening,
): Promise<AgentSession> {
  const [{ rigDefiner }, { defineLoop }, { bash, fileTools }] = await Promise.all([
    import("../../rig/index.js"),
    import("../../loop/index.js"),
    import("../../builtin-tools/index.js"),
  ]);
  const { environment, globals, signal } = context;
  const command = prompt === undefined ? "run --continue" : `run "${fit(oneLine(prompt), 200)}"`;
  const defineRig = rigDefiner(() => ({ fileSystem: environment.fileSystem, homes: environment.homes, command }));
  const shell = options.allow.length > 0 ? bash({ needsApproval: false }) : bash();
  const workspace = { root, capture: captureSettings(options) };
  // A session stays in the placement it was begun in; the wish for another one is a drift, and told as such.
  const shared = options.shared || stored?.shared === true;
  const rig = defineRig({
    storage,
    loops: [defineLoop({ name: loopName, model, system, tools: [fileTools(), shell] })],
    ...(shared ? { sharedWorkspace: workspace } : { exclusiveWorkspace: workspace }),
    snapshots: "idle",
  });
  const adopted = globals.adoptRoot ? ({ root: "adopt" } as const) : {};
  return stored === undefined
    ? rig.startSession({ signal, ...adopted })
    : rig.resumeSession(stored.id, { signal, ...adopted });
}

/** `~/calc  session 3f9a, 2 turns before`. */
function placeText(
  context: Context,
  { root }: Place,
  { id }: AgentSession,
  sessions: readonly SessionSummary[],
  stored: StoredAgent | undefined,
): string {
  const name = sessionNames([...sessions.map((each) => each.id), id])(id);
  const before = stored === undefined || stored.turns === 0 ? "" : `, ${count(stored.turns, "turn")} before`;
  return `${context.displayRoot(root)}  session ${name}${before}`;
}

/** What goes on with such a session, as it is typed. */
function onward({ model, baseUrl, allow, system }: RunValues): string {
  const words = [
    ...(baseUrl === undefined ? [] : ["--base-url", baseUrl]),
    ...(model === undefined ? [] : ["--model", model]),
    ...(allow.length === 0 ? [] : ["--allow", "bash"]),
    ...(system === undefined ? [] : ["--system", system]),
  ];
  return ["looprig run --continue", ...words.map(shellWord), '"go on"'].join(" ");
}
