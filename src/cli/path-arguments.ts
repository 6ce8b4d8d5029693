/** Paths people type, relative to where they stand, as paths in the workspace; and back. Lexical: nothing is looked up. */
import path from "node:path";
import { displayName, parseWorkspacePath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { usage } from "./args.js";
import { readName } from "./names-read-back.js";
import { shellWord } from "./spelling.js";

export interface Standpoint {
  readonly root: string;
  /** The canonical current directory. */
  readonly here: string;
}

/** The workspace path, or undefined for the root itself (which means every path). `usage.invalid` when it lies outside. */
export function pathArgument(given: string, { root, here }: Standpoint): WorkspacePath | undefined {
  const name = readName(given);
  const absolute = path.resolve(here, name);
  const relative = path.relative(root, absolute);
  if (relative === "") return undefined;
  if (relative === ".." || relative.startsWith("../") || name.includes("\0") || name === "") {
    throw usage(
      "PATH",
      `Cannot use ${JSON.stringify(given)}: it lies outside the root "${root}"; wanted a path below it`,
      `a path below ${root}`,
    );
  }
  return parseWorkspacePath(relative);
}

/** The paths after `--`; undefined when none were given or one of them is the root: then everything is meant. */
export function pathArguments(
  given: readonly string[] | undefined,
  at: Standpoint,
): readonly WorkspacePath[] | undefined {
  if (given === undefined) return undefined;
  const paths = given.map((each) => pathArgument(each, at));
  return paths.some((each) => each === undefined) ? undefined : (paths as readonly WorkspacePath[]);
}

/** The path as it would be typed from where the user stands; in our spelling where a terminal could not show it. */
export function typedPath(workspacePath: WorkspacePath, { root, here }: Standpoint): string {
  const inside = here === root || here.startsWith(root === "/" ? "/" : `${root}/`);
  const spelled = inside ? path.relative(here, path.join(root, workspacePath)) : path.join(root, workspacePath);
  return shellWord(displayName(spelled.startsWith("-") ? `./${spelled}` : spelled));
}
