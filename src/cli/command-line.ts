/** From words to an exit status: finds the command, parses, runs it, and reports what failed. Nothing is thrown. */
import { commandIndex, usage } from "./args.js";
import type { Command } from "./command.js";
import { commands } from "./command-table.js";
import { Context } from "./context.js";
import type { Environment } from "./environment.js";
import { errorDocument, errorText } from "./error-report.js";
import { exit, exitCodeFor } from "./exit-codes.js";
import { globalOptions } from "./global-options.js";
import { overviewHelp } from "./help.js";
import { armInterrupts } from "./interrupt.js";
import { nearest } from "./nearest.js";
import { shellWord } from "./spelling.js";
import { styleFor } from "./style.js";
import { version } from "./version.js";

export async function runCommandLine(environment: Environment): Promise<number> {
  const { words } = environment;
  const at = commandIndex(globalOptions, words);
  const name = at === undefined ? undefined : words[at];
  try {
    const ours = beforeDashes(words);
    if (ours.includes("--version")) {
      await environment.stdout.write(`${version(environment.fileSystem)}\n`);
      return exit.done;
    }
    // `looprig help undo` is what many type first.
    const asked = name === "help" ? words[(at ?? 0) + 1] : undefined;
    if (name === "help" && asked === undefined) return await withoutCommand(environment, true);
    if (asked !== undefined) {
      await environment.stdout.write((await load(asked)).help());
      return exit.done;
    }
    const wantsHelp = ours.includes("--help") || ours.includes("-h");
    if (at === undefined || name === undefined) return await withoutCommand(environment, wantsHelp);
    const command = await load(name);
    if (wantsHelp) {
      await environment.stdout.write(command.help());
      return exit.done;
    }
    return await run(environment, command, [...words.slice(0, at), ...words.slice(at + 1)]);
  } catch (error) {
    await reportFailure(environment, error, name);
    return exitCodeFor(error, name);
  }
}

async function withoutCommand(environment: Environment, wantsHelp: boolean): Promise<number> {
  if (wantsHelp) {
    await environment.stdout.write(overviewHelp());
    return exit.done;
  }
  const [first] = environment.words;
  if (first !== undefined) {
    throw usage(
      first,
      `Cannot use ${JSON.stringify(first)} alone: wanted a command`,
      `one of ${Object.keys(commands).join(", ")}`,
      "looprig --help",
    );
  }
  await environment.stderr.write(overviewHelp());
  return exit.usage;
}

async function load(name: string): Promise<Command> {
  const module = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (module !== undefined) return (await module()).command;
  const close = nearest(name, Object.keys(commands));
  throw usage(
    name,
    `Cannot run ${JSON.stringify(name)}: there is no such command${close === undefined ? "" : `; did you mean ${close}`}`,
    `one of ${Object.keys(commands).join(", ")}`,
    close === undefined
      ? `looprig exec -- ${shellWord(name)} runs a program of that name; looprig --help lists the commands`
      : "looprig --help",
  );
}

async function run(environment: Environment, command: Command, words: readonly string[]): Promise<number> {
  const prepared = command.prepare(words);
  const interrupts = armInterrupts(environment.signals, environment.stop);
  try {
    return await prepared.run(new Context(environment, prepared.globals, interrupts));
  } catch (error) {
    // Whatever an abort was turned into on its way up, the signal is what happened.
    throw interrupts.signal.aborted ? interrupts.signal.reason : error;
  } finally {
    interrupts.disarm();
  }
}

async function reportFailure(environment: Environment, error: unknown, name: string | undefined): Promise<void> {
  const { home, env, stdout, stderr } = environment;
  const ours = beforeDashes(environment.words);
  const style = styleFor({ terminal: stderr.terminal, noColor: ours.includes("--no-color"), env });
  const context = { home, now: environment.now(), startedFrom: env["LOOPRIG_SESSION"], style };
  const say = (): Promise<void> => stderr.write(errorText(error, context));
  // Where stdout cannot take its document people are told. A stderr that fails too leaves the exit status to speak.
  const reported = !ours.includes("--json")
    ? say()
    : (name === "exec" ? stderr : stdout).write(`${JSON.stringify(errorDocument(error, context))}\n`).catch(say);
  await reported.catch(() => undefined);
}

/** The words that are ours: what follows `--` is a command's or a path's. */
function beforeDashes(words: readonly string[]): readonly string[] {
  const dashes = words.indexOf("--");
  return dashes === -1 ? words : words.slice(0, dashes);
}
