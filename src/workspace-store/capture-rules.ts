/**
 * Which paths stay out of a capture by rule (U11–U13). The answer for a path depends on the rules and the path alone, so
 * it is the same whatever order a walk takes. Paths are matched in our spelling of their bytes, which is one to one.
 */
import { createRequire } from "node:module";
import type createMatcher from "ignore";
import type { Ignore } from "ignore";
import type { WorkspacePath } from "../core/index.js";
import { LooprigError } from "../core/index.js";
import type { CaptureRules, OmissionClass } from "./contracts.js";

/** Names that usually hold secrets (U13). */
export const defaultPrivatePatterns: readonly string[] = [".env", ".env.*", "*.pem", "id_*"];

export interface PathRules {
  /** The class by which the path is left out, if it is. Asked for a path only when its parents are in. */
  omission(path: () => WorkspacePath, name: string, isDirectory: boolean): OmissionClass | undefined;
  /** Files above it are `over-size`. */
  readonly maxFileBytes: number | undefined;
}

/** Throws `option.invalid` for rules that are no rules. */
export function compileRules(rules: CaptureRules, includePrivateByDefault: boolean): PathRules {
  assertRules(rules);
  const excluded = matcher(rules.exclude ?? [], false);
  // A private name in capitals is still private; for what the user excludes, case means what it says.
  const isPrivate =
    (rules.includePrivate ?? includePrivateByDefault)
      ? undefined
      : matcher(rules.private ?? defaultPrivatePatterns, true);
  const withVcs = rules.vcs === "include";
  return {
    omission(path, name, isDirectory) {
      if (name === ".git" && !withVcs) return "vcs";
      if (excluded === undefined && isPrivate === undefined) return undefined;
      // gitignore tells directories by a trailing slash.
      const given = isDirectory ? `${path()}/` : path();
      if (excluded?.ignores(given)) return "excluded";
      return isPrivate?.ignores(given) ? "private" : undefined;
    },
    maxFileBytes: rules.maxFileBytes,
  };
}

let loaded: typeof createMatcher | undefined;

function matcher(lines: readonly string[], ignoreCase: boolean): Ignore | undefined {
  if (lines.length === 0) return undefined;
  // Most captures have no patterns, and a start should not wait for what reads them.
  loaded ??= createRequire(import.meta.url)("ignore") as typeof createMatcher;
  // Paths of a walk are clean by construction; the library's own check would refuse some that are.
  return loaded({ ignoreCase, allowRelativePaths: true }).add(lines);
}

function assertRules({ exclude, private: privates, vcs, maxFileBytes }: CaptureRules): void {
  for (const [field, lines] of Object.entries({ exclude, private: privates })) {
    const given: unknown = lines;
    if (given !== undefined && !(Array.isArray(given) && given.every((line) => typeof line === "string"))) {
      throw invalid(field, given, "a list of gitignore lines");
    }
  }
  if (vcs !== undefined && !["include", "omit"].includes(vcs)) throw invalid("vcs", vcs, '"include" or "omit"');
  if (maxFileBytes !== undefined && !(Number.isSafeInteger(maxFileBytes) && maxFileBytes >= 0)) {
    throw invalid("maxFileBytes", maxFileBytes, "a whole number of bytes");
  }
}

function invalid(field: string, given: unknown, wanted: string): LooprigError {
  const shown = String(given);
  return new LooprigError("option.invalid", `Cannot capture with ${field} ${JSON.stringify(shown)}: wanted ${wanted}`, {
    field,
    given: shown,
    wanted,
  });
}
