/** From what the caller configured and what is kept with the root to the rules of one capture. Pure, apart from option checks. */
import path from "node:path";
import { LooprigError } from "../core/index.js";
import type { Placement } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import type { CaptureRules } from "../workspace-store/index.js";
import type { CaptureSettings, ExecOptions, OpenWorkspaceOptions } from "./contracts.js";
import type { RootRecordData } from "./root-record.js";

/** U11–U13. What the caller gives replaces what is kept; what is not given stays. */
export function mergeSettings(data: RootRecordData, settings: CaptureSettings): RootRecordData {
  return {
    ...data,
    exclude: settings.exclude === undefined ? data.exclude : [...settings.exclude],
    allowLarge: settings.allowLarge ?? data.allowLarge,
    vcs: settings.vcs === undefined ? data.vcs : settings.vcs === "auto" ? undefined : settings.vcs,
    maxFileBytes: settings.maxFileBytes ?? data.maxFileBytes,
  };
}

export function captureRules(
  data: RootRecordData | undefined,
  settings: CaptureSettings,
  placement: Placement,
  locality: Storage["locality"],
): CaptureRules {
  return {
    exclude: data?.exclude ?? [],
    vcs: data?.vcs ?? (placement === "session" ? "include" : "omit"),
    includePrivate: locality === "local" || settings.allowPrivateRemote === true,
    private: settings.private,
    maxFileBytes: data?.maxFileBytes,
  };
}

const openOptionNames: readonly string[] = [
  ...["root", "storage", "signal", "onProgress", "adoptRoot", "shared", "allowBroadRoot", "acceptRunning"],
  ...["baseline", "missingRoot", "capture", "command"],
];

/** Throws `option.invalid` naming the field, before any I/O. */
export function checkOpenOptions(options: OpenWorkspaceOptions): void {
  const given: unknown = options;
  if (typeof given !== "object" || given === null) throw invalid("options", given, "an object with at least `root`");
  const unknown = Object.keys(given).find((name) => !openOptionNames.includes(name));
  // A misspelt option would silently be one that was not given.
  if (unknown !== undefined) throw invalid(unknown, unknown, `one of ${openOptionNames.join(", ")}`);
  if (typeof options.root !== "string") throw invalid("root", options.root, "the path of a directory");
  for (const field of ["shared", "allowBroadRoot", "acceptRunning", "adoptRoot", "baseline"] as const) {
    optional(field, options[field], "true or false", (value) => typeof value === "boolean");
  }
  optional(
    "missingRoot",
    options.missingRoot,
    '"refuse" or "recreate"',
    (value) => value === "refuse" || value === "recreate",
  );
  optional("command", options.command, "a text", (value) => typeof value === "string");
  const problem = captureProblem(options.capture ?? {});
  if (problem !== undefined) {
    const { field, given, wanted } = problem;
    throw invalid(field === "" ? "capture" : `capture.${field}`, given, wanted);
  }
}

export interface CaptureProblem {
  /** The member that is wrong; "" for the settings as a whole. */
  readonly field: string;
  readonly given: unknown;
  readonly wanted: string;
}

const flag = { wanted: "true or false", holds: (value: unknown) => typeof value === "boolean" };
const lines = {
  wanted: "a list of gitignore lines",
  holds: (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === "string"),
};
const captureMembers: Readonly<
  Record<keyof CaptureSettings, { readonly wanted: string; readonly holds: (value: unknown) => boolean }>
> = {
  exclude: lines,
  private: lines,
  vcs: {
    wanted: '"auto", "include" or "omit"',
    holds: (value) => value === "auto" || value === "include" || value === "omit",
  },
  maxFileBytes: { wanted: "a whole number of bytes, 0 or more", holds: isCount },
  strict: flag,
  allowLarge: flag,
  allowPrivateRemote: flag,
};

/** What is wrong with capture settings as plain JavaScript may give them; undefined when nothing is. */
export function captureProblem(given: unknown): CaptureProblem | undefined {
  if (typeof given !== "object" || given === null) return { field: "", given, wanted: "an object" };
  const members = given as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(members).find((name) => !captureSettingNames.includes(name));
  if (unknown !== undefined) {
    return { field: unknown, given: unknown, wanted: `one of ${captureSettingNames.join(", ")}` };
  }
  const wrong = (Object.keys(captureMembers) as (keyof CaptureSettings)[]).find(
    (field) => members[field] !== undefined && !captureMembers[field].holds(members[field]),
  );
  return wrong === undefined
    ? undefined
    : { field: wrong, given: members[wrong], wanted: captureMembers[wrong].wanted };
}

/** The names of the members of `CaptureSettings`. */
export const captureSettingNames: readonly string[] = Object.freeze(Object.keys(captureMembers));

export function checkExec(command: readonly string[], options: ExecOptions): void {
  const words = (value: unknown): boolean =>
    Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string" && !word.includes("\0"));
  if (!words(command) || command[0] === "") throw invalid("command", command, "a list of words, the program first");
  optional(
    "everyMs",
    options.everyMs,
    "milliseconds from 100 to a day, or 0 for never",
    (value) => isCount(value) && (value === 0 || ((value as number) >= 100 && (value as number) <= 86_400_000)),
  );
  optional("stdio", options.stdio, '"inherit" or "ignore"', (value) => value === "inherit" || value === "ignore");
  optional("cwd", options.cwd, "a directory inside the root", (value) => typeof value === "string");
}

/** The command line people are shown for a program that did not name itself. */
export function defaultCommand(argv: readonly string[]): string {
  return argv
    .slice(1)
    .map((word, index) => (index === 0 ? path.basename(word) : word))
    .join(" ")
    .slice(0, 1_000);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function optional(field: string, value: unknown, wanted: string, holds: (value: unknown) => boolean): void {
  if (value !== undefined && !holds(value)) throw invalid(field, value, wanted);
}

export function invalid(field: string, given: unknown, wanted: string): LooprigError<"option.invalid"> {
  const shown = (JSON.stringify(given) as string | undefined)?.slice(0, 200) ?? typeof given;
  return new LooprigError("option.invalid", `Cannot use ${shown} as \`${field}\`: wanted ${wanted}`, {
    field,
    given: shown,
    wanted,
  });
}
