import path from "node:path";
import { isMissing } from "../core/index.js";
import type { LooprigError } from "../core/index.js";
import { usage } from "./args.js";

export const currentDirectoryGone = (where: string): LooprigError<"usage.invalid"> =>
  usage(
    "--root",
    `Cannot work in ${JSON.stringify(where)}: the current directory is gone; go to another, or name one with --root`,
    "a directory",
  );

/**
 * The current directory; after it was removed, the place where it stood, as the shell remembers it. Throws `usage.invalid`
 * when nobody remembers.
 */
export function currentDirectory(cwd: () => string, env: Readonly<Record<string, string | undefined>>): string {
  try {
    return cwd();
  } catch (error) {
    const remembered = env["PWD"];
    if (remembered !== undefined && path.isAbsolute(remembered)) return remembered;
    throw isMissing(error) ? currentDirectoryGone(".") : error;
  }
}
