/** `REF` or `REF:PATH` (G7). The path is relative to the root, whatever the current directory, and may be spelled as we print it. */
import { parseWorkspacePath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { splitRefPath } from "../workspace/index.js";
import { usage } from "./args.js";
import { readName } from "./names-read-back.js";

export interface RefArgument {
  readonly ref: string;
  readonly path?: WorkspacePath;
}

/** `field` is the operand's name, for errors. */
export function refArgument(field: string, given: string): RefArgument {
  const { ref, path } = splitRefPath(given);
  if (ref === "") throw usage(field, `Cannot use ${JSON.stringify(given)}: wanted a ref before the colon`, "REF:PATH");
  if (path === undefined) return { ref };
  if (path === "") throw usage(field, `Cannot use ${JSON.stringify(given)}: wanted a path after the colon`, "REF:PATH");
  return { ref, path: parseWorkspacePath(readName(path).replace(/^\.\//, "").replace(/\/$/, "")) };
}
