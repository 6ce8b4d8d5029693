import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLooprigError } from "../core/index.js";
import { commandIndex, flag, list, parseArguments, text, value } from "./args.js";
import type { Grammar } from "./args.js";
import { parseDuration } from "./duration.js";
import { globalOptions } from "./global-options.js";

const options = {
  dryRun: flag(["--dry-run"], ""),
  every: value(["--every"], { value: "60s", wanted: "a duration such as 60s", parse: parseDuration, help: "" }),
  label: value(["-m"], { value: "LABEL", wanted: "a label", parse: text, help: "" }),
  exclude: list(["--exclude"], { value: "GLOB", wanted: "a gitignore line", parse: text, help: "" }),
};
const grammar: Grammar<typeof options> = {
  ...{ command: "undo", options, operands: ["TURN"], required: 0, rest: "paths" },
};

const refusal = (
  words: readonly string[],
  of: Grammar<typeof options> = grammar,
): { field: string; message: string } => {
  try {
    parseArguments(of, words);
  } catch (error) {
    if (isLooprigError(error, "usage.invalid")) return { field: error.details.field, message: error.message };
    throw error;
  }
  throw new Error(`${JSON.stringify(words)} was accepted`);
};

describe("what is understood", () => {
  test("values stand after a space, an equals sign or a short letter", () => {
    const { options: read } = parseArguments(grammar, ["--every", "60s", "-mbefore", "--exclude=a", "--exclude", "b"]);
    expect(read).toEqual({ dryRun: false, every: 60_000, label: "before", exclude: ["a", "b"] });
  });

  test("operands and options may come in any order", () => {
    expect(parseArguments(grammar, ["--dry-run", "t4"]).operands).toEqual(["t4"]);
    expect(parseArguments(grammar, ["t4", "--dry-run"]).options.dryRun).toBe(true);
  });

  test("what is not given is absent, false or empty", () => {
    expect(parseArguments(grammar, []).options).toEqual({
      dryRun: false,
      every: undefined,
      label: undefined,
      exclude: [],
    });
  });

  test("whatever follows -- is taken as it is", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (rest) => {
        expect(parseArguments(grammar, ["t1", "--", ...rest]).rest).toEqual(rest);
      }),
    );
  });
});

describe("what is refused names the field and the mend", () => {
  test("an unknown option, with the one that was probably meant", () => {
    expect(refusal(["--dryrun"])).toEqual({
      field: "--dryrun",
      message: 'Cannot use "--dryrun": undo has no such option; did you mean --dry-run',
    });
  });

  test("a missing value, also where another option follows", () => {
    expect(refusal(["--every"]).message).toBe("Cannot use --every without a value: wanted a duration such as 60s");
    expect(refusal(["--every", "--dry-run"]).field).toBe("--every");
  });

  test("a value of the wrong form", () => {
    expect(refusal(["--every", "soon"])).toEqual({
      field: "--every",
      message: 'Cannot use "soon" for --every: wanted a duration such as 60s',
    });
    expect(refusal(["-m", ""]).field).toBe("-m");
  });

  test("a value for an option that takes none, and an option that is given twice", () => {
    expect(refusal(["--dry-run=yes"]).message).toBe('Cannot read "--dry-run=yes": --dry-run takes no value');
    expect(refusal(["-m", "a", "-m", "b"]).message).toBe("Cannot use -m twice: wanted it once");
  });

  test("a word too many, with the -- that was forgotten", () => {
    expect(refusal(["t1", "src"])).toEqual({
      field: "src",
      message: 'Cannot use the word "src": undo takes only TURN here; paths stand after "--"',
    });
    const exec = { ...grammar, command: "exec", operands: [], rest: "command" } as const;
    expect(refusal(["npm", "test"], exec).message).toBe(
      'Cannot use the word "npm": exec takes no such word; the command stands after "--"',
    );
    // Its options are no misspelt ones of ours.
    expect(refusal(["sh", "-c", "true"], exec).message).toContain('Cannot use the word "sh"');
    expect(refusal(["-y"], exec).message).toBe('Cannot use "-y": exec has no such option');
    expect(refusal(["--"], exec).message).toBe('Cannot run exec without a command: wanted it after "--"');
  });

  test("a missing operand, an empty list of paths, and -- where nothing may follow", () => {
    expect(refusal([], { ...grammar, operands: ["REF"], required: 1 }).field).toBe("REF");
    expect(refusal(["--"]).field).toBe("PATH");
    expect(refusal(["--", "x"], { ...grammar, rest: "none" }).field).toBe("--");
  });

  test("nothing that is typed makes the parser fail in another way", () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom("--", "-", "-m", "--every", "--every=", "--exclude=", "--dry-run"),
    );
    fc.assert(
      fc.property(fc.array(word), (words) => {
        try {
          parseArguments(grammar, words);
        } catch (error) {
          if (!isLooprigError(error, "usage.invalid")) throw error;
        }
      }),
    );
  });
});

describe("the command's name", () => {
  test("is the first word that is neither an option nor its value", () => {
    expect(commandIndex(globalOptions, ["--root", "undo", "--json", "status"])).toBe(3);
    expect(commandIndex(globalOptions, ["--root=undo", "log"])).toBe(1);
    expect(commandIndex(globalOptions, ["status", "undo"])).toBe(0);
  });

  test("does not stand after --", () => {
    expect(commandIndex(globalOptions, ["--json", "--", "undo"])).toBeUndefined();
    expect(commandIndex(globalOptions, [])).toBeUndefined();
  });
});

describe("durations", () => {
  test.each([
    ["0", 0],
    ["60s", 60_000],
    ["1.5s", 1_500],
    ["500ms", 500],
    ["5m", 300_000],
    ["1h", 3_600_000],
  ])("%s is %i ms", (given, ms) => expect(parseDuration(given)).toBe(ms));

  test.each(["", "60", "s", "-1s", "1d", "1 s", "1e3s", "0x10s", "99999h", "Infinity", "60S"])("%j is none", (given) =>
    expect(parseDuration(given)).toBeUndefined(),
  );
});
