/**
 * The strict reading of a command line. Pure: words in, typed values out, or `usage.invalid` that names the field and the
 * mend. Nothing is guessed: an unknown option, a missing or repeated value and a word too many are refused.
 *
 * Forms: `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE`; single letters are not joined; `--` ends the options.
 */
import { LooprigError } from "../core/index.js";
import { nearest } from "./nearest.js";
import { shellWord } from "./spelling.js";

interface Named {
  /** `--name`, `-n`; the first is the one that errors speak of. */
  readonly names: readonly [string, ...string[]];
  readonly help: string;
}
export interface FlagOption extends Named {
  readonly kind: "flag";
}
export interface ValueOption<T> extends Named {
  readonly kind: "value";
  /** What stands for the value in the help. */
  readonly value: string;
  /** For errors: "a duration such as 60s". */
  readonly wanted: string;
  /** Undefined when the text is none. */
  readonly parse: (text: string) => T | undefined;
}
export interface ListOption<T> extends Omit<ValueOption<T>, "kind"> {
  readonly kind: "list";
}
export type OptionSpec = FlagOption | ValueOption<unknown> | ListOption<unknown>;
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export type OptionValues<O extends OptionSpecs> = {
  readonly [K in keyof O]: O[K] extends ListOption<infer T>
    ? readonly T[]
    : O[K] extends ValueOption<infer T>
      ? T | undefined
      : boolean;
};

/** What follows `--`: nothing, paths, or a command with its arguments. */
export type Rest = "none" | "paths" | "command";

export interface Grammar<O extends OptionSpecs> {
  readonly command: string;
  readonly options: O;
  /** Names of the operands, in order; the first `required` of them must be there. A last one in `…` may be repeated. */
  readonly operands: readonly string[];
  readonly required: number;
  readonly rest: Rest;
}

export interface Parsed<O extends OptionSpecs> {
  readonly options: OptionValues<O>;
  readonly operands: readonly string[];
  /** The words after `--`; undefined when it was not written. */
  readonly rest: readonly string[] | undefined;
}

export const flag = (names: FlagOption["names"], help: string): FlagOption => ({ kind: "flag", names, help });
export const value = <T>(
  names: Named["names"],
  rest: Pick<ValueOption<T>, "value" | "wanted" | "parse" | "help">,
): ValueOption<T> => ({ kind: "value", names, ...rest });
export const list = <T>(
  names: Named["names"],
  rest: Pick<ListOption<T>, "value" | "wanted" | "parse" | "help">,
): ListOption<T> => ({ kind: "list", names, ...rest });

/** Any text but an empty one. */
export const text = (given: string): string | undefined => (given.trim() === "" ? undefined : given);

export function parseArguments<O extends OptionSpecs>(grammar: Grammar<O>, words: readonly string[]): Parsed<O> {
  const values = new Map<string, unknown>();
  const operands: string[] = [];
  let rest: readonly string[] | undefined;

  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? "";
    if (word === "--") {
      rest = words.slice(i + 1);
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      operands.push(word);
      continue;
    }
    // A command that was written without its dashes: its options are its own.
    if (operands.length > 0 && grammar.rest === "command" && lookUp(grammar.options, word) === undefined) {
      operands.push(...words.slice(i));
      break;
    }
    const { key, option, name, attached } = findOption(grammar, word);
    if (option.kind === "flag") {
      if (attached !== undefined) throw usage(name, `Cannot read ${quote(word)}: ${name} takes no value`, "no value");
      values.set(key, true);
      continue;
    }
    const given = attached ?? words[i + 1];
    if (given === undefined || (attached === undefined && given.startsWith("-"))) {
      throw usage(
        name,
        `Cannot use ${name} without a value: wanted ${option.wanted}`,
        option.wanted,
        `${name} ${option.value}`,
      );
    }
    if (attached === undefined) i++;
    const parsed = option.parse(given);
    if (parsed === undefined) {
      throw usage(name, `Cannot use ${quote(given)} for ${name}: wanted ${option.wanted}`, option.wanted);
    }
    if (option.kind === "list") values.set(key, [...((values.get(key) as unknown[] | undefined) ?? []), parsed]);
    else if (values.has(key)) throw usage(name, `Cannot use ${name} twice: wanted it once`, "one value");
    else values.set(key, parsed);
  }

  checkOperands(grammar, operands);
  checkRest(grammar, rest);
  const options = Object.fromEntries(
    Object.entries(grammar.options).map(([key, option]) => [
      key,
      values.get(key) ?? (option.kind === "flag" ? false : option.kind === "list" ? [] : undefined),
    ]),
  ) as OptionValues<O>;
  return { options, operands, rest };
}

/**
 * Where the command's name stands: the first word that is neither an option nor an option's value. Options that hold for
 * every command may stand before it. Undefined when there is none before `--`.
 */
export function commandIndex(options: OptionSpecs, words: readonly string[]): number | undefined {
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? "";
    if (word === "--") return undefined;
    if (!word.startsWith("-") || word === "-") return i;
    const found = lookUp(options, word);
    if (found !== undefined && found.option.kind !== "flag" && found.attached === undefined) i++;
  }
  return undefined;
}

export function usage(field: string, message: string, wanted: string, hint?: string): LooprigError<"usage.invalid"> {
  return new LooprigError("usage.invalid", message, { field, wanted }, { hint });
}

const quote = (word: string): string => JSON.stringify(word);

interface Found {
  readonly key: string;
  readonly option: OptionSpec;
  readonly name: string;
  readonly attached: string | undefined;
}

function lookUp(options: OptionSpecs, word: string): Found | undefined {
  const equals = word.indexOf("=");
  const long = word.startsWith("--");
  for (const [key, option] of Object.entries(options)) {
    for (const name of option.names) {
      if (word === name) return { key, option, name, attached: undefined };
      if (long && equals > 0 && word.slice(0, equals) === name) {
        return { key, option, name, attached: word.slice(equals + 1) };
      }
      if (!long && name.length === 2 && word.startsWith(name) && option.kind !== "flag") {
        return { key, option, name, attached: word.slice(2) };
      }
    }
  }
  return undefined;
}

function findOption<O extends OptionSpecs>(grammar: Grammar<O>, word: string): Found {
  const found = lookUp(grammar.options, word);
  if (found !== undefined) return found;
  const known = Object.values(grammar.options).flatMap((option) => option.names);
  const close = nearest(word.replace(/=.*$/s, ""), known);
  throw usage(
    word,
    `Cannot use ${quote(word)}: ${grammar.command} has no such option${close === undefined ? "" : `; did you mean ${close}`}`,
    `one of ${known.filter((name) => name.startsWith("--")).join(", ")}`,
    `looprig ${grammar.command} --help`,
  );
}

function checkOperands<O extends OptionSpecs>(grammar: Grammar<O>, operands: readonly string[]): void {
  const repeats = grammar.operands.at(-1)?.endsWith("…") === true;
  const extra = repeats ? undefined : operands[grammar.operands.length];
  if (extra !== undefined) {
    const mend =
      grammar.rest === "paths"
        ? `paths stand after "--"`
        : grammar.rest === "command"
          ? `the command stands after "--"`
          : `leave it out`;
    const hint =
      grammar.rest === "none"
        ? `looprig ${grammar.command} --help`
        : `looprig ${[grammar.command, ...operands.slice(0, grammar.operands.length).map(shellWord)].join(" ")} -- ${operands
            .slice(grammar.operands.length)
            .map(shellWord)
            .join(" ")}`;
    throw usage(
      extra,
      `Cannot use the word ${quote(extra)}: ${grammar.command} takes ${takes(grammar)}; ${mend}`,
      mend,
      hint,
    );
  }
  const missing = operands.length < grammar.required ? grammar.operands[operands.length] : undefined;
  if (missing !== undefined) {
    throw usage(
      missing,
      `Cannot run ${grammar.command} without ${missing}`,
      missing,
      `looprig ${grammar.command} --help`,
    );
  }
}

function checkRest<O extends OptionSpecs>(grammar: Grammar<O>, rest: readonly string[] | undefined): void {
  if (grammar.rest === "none") {
    if (rest === undefined) return;
    throw usage("--", `Cannot use "--": ${grammar.command} takes nothing after it; leave it out`, "nothing after --");
  }
  if (grammar.rest === "command" && (rest === undefined || rest[0] === undefined || rest[0] === "")) {
    throw usage(
      "CMD",
      `Cannot run ${grammar.command} without a command: wanted it after "--"`,
      "a command after --",
      `looprig ${grammar.command} -- npm test`,
    );
  }
  if (grammar.rest === "paths" && rest?.length === 0) {
    throw usage("PATH", `Cannot use "--" alone: wanted one or more paths after it`, "one or more paths after --");
  }
}

const takes = <O extends OptionSpecs>(grammar: Grammar<O>): string =>
  grammar.operands.length === 0 ? "no such word" : `only ${grammar.operands.join(" and ")} here`;
