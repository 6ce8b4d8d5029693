/** What is cut short: operations on a root, what has to have happened before each, and what takes each back. */
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { RestoreReceipt, Workspace } from "../../src/workspace/index.js";
import type { World } from "./effects.js";

export interface Operation {
  readonly run: (workspace: Workspace) => Promise<RestoreReceipt>;
  /** From the tree it left to the one it found. */
  readonly back: (workspace: Workspace) => Promise<RestoreReceipt>;
  /** In a root that several may write to. */
  readonly shared?: true;
}

const consent = { includeWindow: true } as const;
const undo = (workspace: Workspace): Promise<RestoreReceipt> => workspace.undo(consent);
const redo = (workspace: Workspace): Promise<RestoreReceipt> => workspace.redo(consent);

export const operations = {
  undo: { run: undo, back: redo },
  "undo in a shared root": { run: undo, back: redo, shared: true },
  redo: { run: redo, back: undo },
  /** What somebody else changed meanwhile is left as it is. */
  "undo past a conflict": {
    run: (workspace) => workspace.undo({ ...consent, onConflict: "skip" }),
    back: redo,
  },
  "undo of a restore": { run: undo, back: redo },
  restore: { run: (workspace) => workspace.restore("c1", consent), back: undo },
  "restore of some paths": {
    run: (workspace) => workspace.restore("c1", { ...consent, paths: ["edited", "to-file", "tight", "deleted"] }),
    back: undo,
  },
  /** What somebody else made goes too. */
  "exact restore": { run: (workspace) => workspace.restore("c1", { ...consent, exact: true }), back: undo },
} as const satisfies Readonly<Record<string, Operation>>;

export type OperationName = keyof typeof operations;
export const operationNames = Object.keys(operations) as readonly OperationName[];
export const isShared = (name: OperationName): boolean => "shared" in operations[name];

export interface Place {
  readonly root: string;
  readonly stateDir: string;
}

/** Opens the root as a program does, does the operation, closes everything. */
export async function carryOut(name: OperationName, { root, stateDir }: Place, world: World): Promise<RestoreReceipt> {
  const { fileSystem } = world;
  await using storage = world.storage(await openLocalStorage({ dir: stateDir, fileSystem }));
  const options = { root, storage, baseline: false, shared: isShared(name), command: name };
  await using workspace = await openWorkspace(options, { fileSystem });
  return await operations[name].run(workspace);
}
