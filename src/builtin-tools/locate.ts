/**
 * From the path a model wrote to the one place below the root that it means (R1, C9). Links are followed here, by hand and
 * only as long as they stay inside; the result bears no link, and whoever uses it opens it component by component and
 * follows nothing (U10). So a link that is swapped in later is refused, not followed.
 */
import path from "node:path";
import {
  Directory,
  LooprigError,
  components,
  displayName,
  errnoOf,
  isMissing,
  nameFromBytes,
  openBelow,
  parentOf,
  parseWorkspacePath,
  rootPath,
  baseName,
} from "../core/index.js";
import type { CanonicalRoot, FileSystem, WorkspacePath } from "../core/index.js";
import { canonicalPath } from "../workspace/index.js";
import { told } from "./present-file.js";

/** As Linux has it. */
const linksMax = 40;
/** Linux takes no longer path from any program; a tree that only we could reach into would be nobody's gain. */
const pathBytesMax = 4_095;
/** Every level is opened on the way to the next, so no path may have any number of them. */
const levelsMax = 200;

/**
 * The place `given` means: relative to `base` (default the root) or absolute, through links inside the root. It may be
 * absent. Throws `path.escapes` or `path.invalid`.
 */
export function locate(
  fileSystem: FileSystem,
  root: CanonicalRoot,
  given: string,
  base: WorkspacePath = rootPath,
): WorkspacePath {
  if (given === "" || given.includes("\0")) {
    throw new LooprigError(
      "path.invalid",
      `Cannot use ${JSON.stringify(given)} as a path: it is empty or holds a NUL`,
      {
        path: given,
        reason: given === "" ? "it is empty" : "it holds a NUL",
      },
    );
  }
  assertReachable(root, given);
  using top = Directory.open(fileSystem, root);
  const rest = given.startsWith("/") ? inside(fileSystem, root, given) : [...components(base), ...given.split("/")];
  const done: string[] = [];
  let links = 0;
  let absent = false;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (done.pop() === undefined) throw escapes(given, "..");
      absent = false;
      continue;
    }
    const at = [...done, name].join("/") as WorkspacePath;
    const target = absent ? undefined : linkTarget(fileSystem, top, at);
    if (target === "absent") absent = true;
    if (target === undefined || target === "absent") {
      done.push(name);
      continue;
    }
    if (++links > linksMax) throw escapes(given, name);
    if (target.target.startsWith("/")) done.length = 0;
    rest.unshift(
      ...(target.target.startsWith("/")
        ? insideOf(root, path.posix.normalize(target.target), given, name)
        : target.target.split("/")),
    );
  }
  return done.length === 0 ? rootPath : parseWorkspacePath(done.join("/"));
}

function assertReachable(root: CanonicalRoot, given: string): void {
  const bytes = Buffer.byteLength(given) + (given.startsWith("/") ? 0 : Buffer.byteLength(root) + 1);
  const levels = given.split("/").length;
  const reason =
    bytes > pathBytesMax
      ? `it has ${bytes} bytes, with the root it is below, and no more than ${pathBytesMax} can be opened`
      : levels > levelsMax
        ? `it has ${levels} levels, and no more than ${levelsMax} are taken`
        : undefined;
  if (reason === undefined) return;
  const shown = displayName(given.length > 80 ? `${given.slice(0, 80)}…` : given);
  throw new LooprigError("path.invalid", `Cannot use ${shown} as a path: ${reason}`, { path: given, reason });
}

/** What the link at `at` points to; undefined for anything that is no link. */
function linkTarget(
  fileSystem: FileSystem,
  top: Directory,
  at: WorkspacePath,
): { readonly target: string } | "absent" | undefined {
  try {
    using directory = openBelow(top, parentOf(at));
    const name = baseName(at);
    if (!directory.lstat(name).isSymbolicLink()) return undefined;
    return { target: nameFromBytes(fileSystem.readlink(directory.at(name))) };
  } catch (error) {
    if (isMissing(error)) return "absent";
    // Whoever opens it says so.
    if (errnoOf(error) === "ENAMETOOLONG") return "absent";
    throw told("reach", at, error);
  }
}

function inside(fileSystem: FileSystem, root: CanonicalRoot, given: string): string[] {
  if (given === root || given.startsWith(`${root}/`) || root === "/") return given.slice(root.length).split("/");
  // The root by another name: through a link above it, or with `..` on the way.
  let canonical: string;
  try {
    canonical = canonicalPath(given, { fileSystem });
  } catch {
    throw escapes(given, given);
  }
  return insideOf(root, canonical, given, given);
}

function insideOf(root: CanonicalRoot, absolute: string, given: string, component: string): string[] {
  if (absolute === root) return [];
  const prefix = root === "/" ? "/" : `${root}/`;
  if (!absolute.startsWith(prefix)) throw escapes(given, component);
  return absolute.slice(prefix.length).split("/");
}

const escapes = (given: string, component: string): LooprigError =>
  new LooprigError(
    "path.escapes",
    `Cannot use ${displayName(given)}: it leads out of the workspace at ${displayName(component)}; use a path relative to the root`,
    { path: given, component },
  );
