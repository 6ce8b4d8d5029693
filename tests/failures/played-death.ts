/**
 * Death, played in this process: from one effect on nothing reaches the disk any more, and every call throws. Much faster than
 * a process that is killed, and the same but for what only the operating system does.
 */
import { nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem } from "../../src/core/index.js";
import type { Storage } from "../../src/storage/index.js";
import { countEffects } from "./effects.js";
import type { World } from "./effects.js";

function writeHalf([fd, buffer, offset, length, position]: Parameters<FileSystem["write"]>): void {
  nodeFileSystem.write(fd, buffer, offset, length >> 1, position);
}

class Dead extends Error {
  override readonly name = "Dead";
}

/** Dies right before the effect with that number; `torn`: in the middle of it, if it is a write. */
export class PlayedDeath implements Disposable {
  readonly world: World;
  #dead = false;
  readonly #open = new Set<number>();
  readonly #storages: Storage[] = [];

  constructor(at: number, { torn = false }: { readonly torn?: boolean } = {}) {
    const tracked: FileSystem = {
      ...nodeFileSystem,
      open: (...args) => {
        const fd = nodeFileSystem.open(...args);
        this.#open.add(fd);
        return fd;
      },
      close: (fd) => {
        nodeFileSystem.close(fd);
        this.#open.delete(fd);
      },
    };
    const assertAlive = (name: string): void => {
      if (this.#dead && name !== "close") throw new Dead(`dead before effect ${at}`);
    };
    const world = countEffects(
      ({ number, name, args }) => {
        if (number === at) {
          this.#dead = true;
          if (torn && name === "write") writeHalf(args as Parameters<FileSystem["write"]>);
        }
        assertAlive(name);
      },
      assertAlive,
      tracked,
    );
    this.world = {
      ...world,
      storage: (inner) => {
        this.#storages.push(inner);
        const storage = world.storage(inner);
        const close = (): Promise<void> => (this.#dead ? Promise.resolve() : inner.close());
        return { ...storage, close, [Symbol.asyncDispose]: close };
      },
    };
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Runs until death; false when it lived to the end. Errors of the living are passed on. */
  async befalls(work: (world: World) => Promise<unknown>): Promise<boolean> {
    try {
      await work(this.world);
    } catch (error) {
      if (!this.#dead) throw error;
    }
    if (this.#dead) await this.#bury();
    return this.#dead;
  }

  /** What the operating system does when a process is gone: locks and descriptors are freed. */
  async #bury(): Promise<void> {
    for (const storage of this.#storages) await storage.close();
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    for (const fd of this.#open) nodeFileSystem.close(fd);
    this.#open.clear();
  }
}
