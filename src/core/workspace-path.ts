/** Paths inside a workspace: relative, `/`-separated, lexically clean, in the spelling of `names.ts`. The root itself is "". */
import { LooprigError } from "./errors.js";
import type { Brand } from "./ids.js";

/** A clean path relative to the root, with `/`; "" is the root itself. */
export type WorkspacePath = Brand<string, "WorkspacePath">;

export const rootPath = "" as WorkspacePath;

/** Throws `path.invalid` for absolute, empty, NUL-holding paths and those with "", "." or ".." as a component. */
export function parseWorkspacePath(text: string): WorkspacePath {
  const reason =
    text === ""
      ? "it is empty"
      : text.startsWith("/")
        ? "it is absolute"
        : text.includes("\0")
          ? "it holds a NUL"
          : text.split("/").some((part) => part === "" || part === "." || part === "..")
            ? 'it has "", "." or ".." as a component'
            : undefined;
  if (reason !== undefined) {
    throw new LooprigError("path.invalid", `Cannot use ${JSON.stringify(text)} as a path in the workspace: ${reason}`, {
      path: text,
      reason,
    });
  }
  return text as WorkspacePath;
}

export const joinPath = (parent: WorkspacePath, name: string): WorkspacePath =>
  (parent === "" ? name : `${parent}/${name}`) as WorkspacePath;

/** The parent of a path; that of a top-level name is the root. */
export const parentOf = (path: WorkspacePath): WorkspacePath =>
  path.slice(0, Math.max(0, path.lastIndexOf("/"))) as WorkspacePath;

export const baseName = (path: WorkspacePath): string => path.slice(path.lastIndexOf("/") + 1);

export const components = (path: WorkspacePath): readonly string[] => (path === "" ? [] : path.split("/"));

/** Whether `path` is `ancestor` or lies below it. */
export const isWithin = (path: WorkspacePath, ancestor: WorkspacePath): boolean =>
  ancestor === "" || path === ancestor || path.startsWith(`${ancestor}/`);
