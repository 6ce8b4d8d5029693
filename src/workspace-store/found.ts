/** What stands at a name: its kind, or the class by which it is left out, and the row that says so. */
import { errnoOf, isEscapedName, nameToBytes, StorageError } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import type { PathRules } from "./capture-rules.js";
import type { OmissionClass } from "./contracts.js";
import type { RowList } from "./row-list.js";
import { isDirectory, isLink, isRegular, isSettled, permissionMask } from "./stamps.js";
import type { Look, Looker } from "./stamps.js";
import { kinds, looks, rowFlags } from "./table-layout.js";
import { omissionClasses } from "./tree-codec.js";

export type Found =
  | { readonly kind: "file" | "directory"; readonly look: Look }
  | { readonly kind: "symlink"; readonly look: Look; readonly target: Buffer }
  | { readonly kind: "omitted"; readonly class: OmissionClass; readonly look?: Look | undefined };

export interface ClassifierOptions {
  readonly fileSystem: FileSystem;
  readonly looker: Looker;
  readonly rules: PathRules;
  /** `identityKey` of directories that are never captured (B2). */
  readonly ownDirectories: ReadonlySet<string>;
  /** The device of the root. */
  readonly dev: number;
}

export const identityKey = (dev: bigint | number, ino: bigint | number): string => `${Number(dev)}:${Number(ino)}`;

/** How often a name that changes its kind while it is looked at is looked at again. */
const looksMax = 3;

export class Classifier {
  readonly #options: ClassifierOptions;

  constructor(options: ClassifierOptions) {
    this.#options = options;
  }

  /**
   * What stands at `name` of an open directory; undefined for nothing. `at` is what to look at, which may be a path where
   * that is quicker than going by the handle.
   */
  find(handle: Directory, name: string, at: string | Buffer, path: () => WorkspacePath): Found | undefined {
    for (let attempts = 0; attempts < looksMax; attempts++) {
      try {
        const look = this.#options.looker.at(at);
        return look === undefined ? undefined : this.#classify(handle, name, look, path);
      } catch (error) {
        const errno = errnoOf(error);
        if (errno === "ENOENT") return undefined;
        // Not a link any more when it was read: look again.
        if (errno === "EINVAL") continue;
        assertOwnMeans(error, path());
        return { kind: "omitted", class: "unreadable" };
      }
    }
    return { kind: "omitted", class: "unstable" };
  }

  #classify(handle: Directory, name: string, look: Look, path: () => WorkspacePath): Found {
    const { rules, ownDirectories, fileSystem, dev } = this.#options;
    const isBranch = isDirectory(look.mode);
    const omission = rules.omission(path, name, isBranch);
    if (omission !== undefined) return { kind: "omitted", class: omission };
    if (isBranch) {
      if (ownDirectories.has(identityKey(look.dev, look.ino))) return { kind: "omitted", class: "excluded", look };
      // Only directories tell: overlay file systems give files the device of a layer below.
      if (look.dev !== dev) return { kind: "omitted", class: "mount" };
      return { kind: "directory", look };
    }
    if (isRegular(look.mode)) {
      const overSize = rules.maxFileBytes !== undefined && look.size > rules.maxFileBytes;
      return overSize ? { kind: "omitted", class: "over-size", look } : { kind: "file", look };
    }
    if (isLink(look.mode)) return { kind: "symlink", look, target: fileSystem.readlink(handle.at(name)) };
    return { kind: "omitted", class: "special" };
  }
}

/** Classes that are looked at anew each time: nothing in the stamps of the name would show that they no longer hold. */
const passing: ReadonlySet<OmissionClass> = new Set(["mount", "unreadable", "unstable"]);

/** Adds the row of what was found, and returns where it starts in `list.rows`. */
export function addFound(list: RowList, name: string, found: Found, lookedAt: number): number {
  const isRaw = isEscapedName(name);
  const row = list.add(
    kinds[found.kind],
    isRaw ? nameToBytes(name) : name,
    found.kind === "symlink" ? found.target : undefined,
  );
  const { look } = found;
  list.setLook(row, looks.same);
  if (look !== undefined) {
    list.setStamps(row, look.size, look.mtimeMs, look.ctimeMs, look.ino);
    list.setMode(row, look.mode & permissionMask);
  }
  switch (found.kind) {
    case "file":
      list.addFlags(row, rowFlags.unread);
      break;
    case "symlink":
      if (isSettled(found.look, lookedAt)) list.addFlags(row, rowFlags.trusted);
      break;
    case "omitted": {
      list.setClass(row, omissionClasses.indexOf(found.class));
      // A directory of ours is left out by its identity, which is not in the row.
      const isOwn = found.class === "excluded" && look !== undefined;
      list.addFlags(row, isOwn || passing.has(found.class) ? rowFlags.always : rowFlags.trusted);
      break;
    }
    case "directory":
  }
  return row;
}

/** Running out of descriptors or memory is our failure and must not pass for a property of the tree. */
export function assertOwnMeans(error: unknown, path: string): void {
  const errno = errnoOf(error);
  if (errno !== undefined && !["EMFILE", "ENFILE", "ENOMEM"].includes(errno)) return;
  if (errno === undefined) throw error;
  throw new StorageError(
    "storage.failed",
    `Cannot capture ${JSON.stringify(path)}: the process has no descriptors or memory left (${errno})`,
    { operation: "capture", path, errno },
    { cause: error, retryable: true },
  );
}
