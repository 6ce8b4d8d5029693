/** The storages every behaviour of this feature is tested on. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { openLocalStorage } from "../../storage-local/index.js";
import { createMemoryStorage } from "../../storage/index.js";
import type { Storage } from "../../storage/index.js";

export interface Backend {
  open(): Promise<Storage>;
  /** After the storage was closed. */
  dispose(): void;
}

function memory(): Backend {
  return { open: async () => createMemoryStorage(), dispose: () => undefined };
}

function local(): Backend {
  let dir = "";
  return {
    open() {
      dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
      return openLocalStorage({ dir: path.join(dir, "state") });
    },
    dispose: () => fs.rmSync(dir, { recursive: true, force: true }),
  };
}

export const backends: readonly (readonly [name: string, make: () => Backend])[] = [
  ["memory", memory],
  ["local", local],
];
