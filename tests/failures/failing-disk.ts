/** A disk that refuses: one effect, or every one from some moment on, until it is mended. */
import { nodeFileSystem } from "../../src/core/index.js";
import { storageFailure } from "../../src/storage-local/failures.js";
import { countEffects } from "./effects.js";
import type { World } from "./effects.js";

export const errnos = ["ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT", "EMFILE"] as const;
export type Errno = (typeof errnos)[number];

export class FailingDisk {
  readonly world: World;
  #failed: string | undefined;
  #mended = false;

  /** Refuses the effect with that number, and with `forever` all that follow. */
  constructor({
    at,
    errno,
    forever = false,
  }: {
    readonly at: number;
    readonly errno: Errno;
    readonly forever?: boolean;
  }) {
    this.world = countEffects(({ number, name }) => {
      if (this.#mended || number < at || (number > at && !forever)) return;
      this.#failed ??= name;
      const error = Object.assign(new Error(`${errno}: ${name}`), { code: errno });
      // What SQLite meets has been put into words by the storage.
      throw name.includes(".") ? storageFailure(error, name, "state", nodeFileSystem) : error;
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
