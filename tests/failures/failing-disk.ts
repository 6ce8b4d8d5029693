/** A disk that refuses: one effect, or every one from some moment on, until it is mended. */
import { nodeFileSystem } from "../../src/core/index.js";
import { storageFailure } from "../../src/storage-local/failures.js";
import { countEffects } from "./effects.js";
import type { World } from "./effects.js";

export const errnos = ["ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT", "EMFILE"] as const;
export type Errno = (typeof errnos)[number];

export interface Refusal {
  readonly at: number;
  readonly errno: Errno;
  readonly forever?: boolean;
  readonly of?: "everything" | "files";
}

export class FailingDisk {
  readonly world: World;
  #failed: string | undefined;
  #mended = false;

  /**
   * Refuses the effect with that number, and with `forever` all that follow; with "files" no transaction, as where the root
   * lies on another disk than the store.
   */
  constructor({ at, errno, forever = false, of = "everything" }: Refusal) {
    this.world = countEffects(({ number, name }) => {
      const transaction = name.includes(".");
      if (this.#mended || number < at || (number > at && !forever) || (of === "files" && transaction)) return;
      this.#failed ??= name;
      const error = Object.assign(new Error(`${errno}: ${name}`), { code: errno });
      // What SQLite meets has been put into words by the storage.
      throw transaction ? storageFailure(error, name, "state", nodeFileSystem) : error;
    });
  }

  /** The effect that was refused first. */
  get failed(): string | undefined {
    return this.#failed;
  }

  mend(): void {
    this.#mended = true;
  }
}
