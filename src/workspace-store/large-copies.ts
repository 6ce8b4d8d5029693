/**
 * Equal large files of one materialization share their blocks where the file system can (XFS, Btrfs): the second is cloned
 * from the first, which stays open for that long.
 *
 * What is cloned is what was verified when it was written: the first must not have been touched since, or the second is
 * written like any other. Nothing is ever shared with the store, whose packs hold compressed blocks; and a clone, unlike a
 * hard link, is a file of its own.
 */
import { errnoOf } from "../core/index.js";
import type { FileSystem, FsPath } from "../core/index.js";
import type { FileEntry } from "./content.js";

/** What a file system answers that cannot clone, or not to there. */
const refusals: ReadonlySet<string | undefined> = new Set([
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EXDEV",
  "EINVAL",
  "ENOTTY",
]);

interface Source {
  readonly fd: number;
  readonly entry: FileEntry;
  readonly version: string;
}

export class LargeCopies {
  readonly #fs: FileSystem;
  #source: Source | undefined;
  /** One refusal is enough: it is one volume. A descriptor is named by a path on Linux alone. */
  #isPossible = process.platform === "linux";

  constructor(fileSystem: FileSystem) {
    this.#fs = fileSystem;
  }

  /** Takes over the descriptor of a file just written if `next` may be cloned from it. */
  keep(fd: number, entry: FileEntry, next: FileEntry): boolean {
    if (!this.#isPossible || !isSame(entry, next)) return false;
    this.close();
    this.#source = { fd, entry, version: this.#version(fd) };
    return true;
  }

  /** Makes the file at `to` a clone of the one kept, if that holds the same; false when it must be written. */
  async clone(entry: FileEntry, to: () => FsPath): Promise<boolean> {
    const source = this.#source;
    if (source === undefined) return false;
    if (!isSame(source.entry, entry)) {
      this.close();
      return false;
    }
    if (this.#version(source.fd) !== source.version) return false;
    const at = to();
    try {
      await this.#fs.cloneFile(`/proc/self/fd/${source.fd}`, at);
    } catch (error) {
      if (refusals.has(errnoOf(error))) this.#isPossible = false;
      // A mode that hides the source from its owner hides it from a clone.
      else if (errnoOf(error) !== "EACCES") throw error;
      this.close();
      return false;
    }
    if (this.#version(source.fd) === source.version) return true;
    this.#fs.unlink(at);
    return false;
  }

  close(): void {
    if (this.#source !== undefined) this.#fs.close(this.#source.fd);
    this.#source = undefined;
  }

  #version(fd: number): string {
    const { size, mtimeNs, ctimeNs } = this.#fs.fstat(fd);
    return `${size} ${mtimeNs} ${ctimeNs}`;
  }
}

/** A clone takes the mode of its source, so with another it would be open to others for a moment. */
const isSame = (a: FileEntry, b: FileEntry): boolean => a.id === b.id && a.size === b.size && a.mode === b.mode;
