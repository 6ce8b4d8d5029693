/** What a command is: a grammar, its help, and one function from typed values to an exit status. */
import { parseArguments, usage } from "./args.js";
import type { Grammar, OptionSpecs, Parsed } from "./args.js";
import type { Context } from "./context.js";
import { globalOptions } from "./global-options.js";
import type { GlobalOptions, GlobalValues } from "./global-options.js";
import { commandHelp } from "./help.js";

export interface CommandDefinition<O extends OptionSpecs> {
  readonly grammar: Grammar<O>;
  /** After the program's name: `undo [TURN]`. */
  readonly usage: string;
  readonly summary: string;
  /** Paragraphs below the options. */
  readonly notes: readonly string[];
  /** Whether `--session` narrows what it speaks of. Where it does not, it is refused rather than ignored. */
  readonly narrows: boolean;
  /** What `--json` prints, where it is not one document on stdout. */
  readonly json?: string;
  /** Resolves to the exit status. Everything that fails is thrown. */
  readonly run: (context: Context, parsed: Parsed<O & GlobalOptions>) => Promise<number>;
}

/** A command whose option types are settled. */
export interface Command {
  readonly help: () => string;
  /** Pure. Throws `usage.invalid`. */
  readonly prepare: (words: readonly string[]) => PreparedCommand;
}

export interface PreparedCommand {
  readonly globals: GlobalValues;
  readonly run: (context: Context) => Promise<number>;
}

export function defineCommand<O extends OptionSpecs>(definition: CommandDefinition<O>): Command {
  const options: O & GlobalOptions = { ...definition.grammar.options, ...globalOptions };
  const grammar: Grammar<O & GlobalOptions> = { ...definition.grammar, options };
  return {
    help: () => commandHelp(definition),
    prepare: (words) => {
      const parsed = parseArguments(grammar, words);
      if (parsed.options.session !== undefined && !definition.narrows) {
        const { command } = grammar;
        throw usage(
          "--session",
          `Cannot use --session with ${command}: it narrows nothing there; leave it out`,
          "no --session",
        );
      }
      return { globals: parsed.options, run: (context) => definition.run(context, parsed) };
    },
  };
}
