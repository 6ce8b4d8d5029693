/** The options every command takes. */
import { flag, text, value } from "./args.js";
import type { OptionValues } from "./args.js";

export const globalOptions = {
  root: value(["--root"], {
    value: "DIR",
    wanted: "a directory",
    parse: text,
    help: "the root; default: the nearest known directory at or above this one, else this one",
  }),
  session: value(["--session"], {
    value: "ID",
    wanted: "four or more characters of a session id",
    parse: (given) => (/^[0-9a-f][0-9a-f-]{3,35}$/.test(given) ? given : undefined),
    help: "only what this session did",
  }),
  json: flag(["--json"], "one JSON document"),
  yes: flag(["--yes"], "answer yes to the question"),
  adoptRoot: flag(["--adopt-root"], "accept the directory that stands at the root now"),
  quiet: flag(["-q", "--quiet"], "only data, questions and errors"),
  noColor: flag(["--no-color"], "no colour"),
  help: flag(["-h", "--help"], "this text"),
  version: flag(["--version"], "the version"),
} as const;

export type GlobalOptions = typeof globalOptions;
export type GlobalValues = OptionValues<GlobalOptions>;
