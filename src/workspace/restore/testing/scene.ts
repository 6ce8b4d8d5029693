/** A root on disk, a plan from one tree to another, and the means to carry it out, interrupt it and settle it. For tests. */
import fs from "node:fs";
import path from "node:path";
import { Directory, interceptFileSystem, nodeFileSystem, sha256Hex } from "../../../core/index.js";
import type { CanonicalRoot, FileSystem, FileSystemCall, PlanId } from "../../../core/index.js";
import { createMemoryStorage } from "../../../storage/index.js";
import type { Storage } from "../../../storage/index.js";
import { applyPlan } from "../apply.js";
import type { ApplyOptions, AppliedPlan } from "../apply.js";
import type { PlannedOperation } from "../plan.js";
import { createPlanStore } from "../plan-store.js";
import type { PlanStore } from "../plan-store.js";
import { planRestore } from "../planner.js";
import { settlePlan } from "../settle.js";
import type { SettledPlan } from "../settle.js";
import { changesOf, MapStore, readTree, removeDirectory, temporaryDirectory, treeOf, writeTree } from "./trees.js";
import type { Node, Nodes } from "./trees.js";

export const planId = "0123456789ab" as PlanId;

/** The operations that turn one tree into the other. */
export async function operationsBetween(before: Nodes, after: Nodes): Promise<readonly PlannedOperation[]> {
  const plan = await planRestore({
    changes: changesOf(before, after),
    present: treeOf(before),
    wanted: treeOf(after),
    explains: () => true,
    exact: true,
    keptReason: () => "foreign",
  });
  return plan.operations;
}

export class Scene {
  readonly dir = temporaryDirectory();
  readonly root = this.dir as CanonicalRoot;
  readonly storage: Storage = createMemoryStorage();
  readonly store: MapStore;
  /** Where the files of `linked` have another name: outside the root. */
  readonly outside: string | undefined;

  constructor(
    readonly before: Nodes,
    readonly after: Nodes,
    readonly operations: readonly PlannedOperation[],
    /** Files that have another name outside the root. A pair has it in the root: the second is the first. */
    linked: readonly (string | readonly [string, string])[] = [],
  ) {
    this.store = new MapStore(before, after);
    writeTree(this.dir, before);
    if (linked.length === 0) return;
    this.outside = temporaryDirectory();
    for (const one of linked) {
      const [from, to] = typeof one === "string" ? [one, path.join(this.outside, one)] : [one[0], this.at(one[1])];
      fs.rmSync(to, { force: true });
      fs.linkSync(this.at(from), to);
    }
  }

  at(name: string): string {
    return path.join(this.dir, name);
  }

  /** The files outside the root, as they are now. */
  outsideTree(): Record<string, Node> {
    return this.outside === undefined ? {} : readTree(this.outside);
  }

  static async of(before: Nodes, after: Nodes): Promise<Scene> {
    return new Scene(before, after, await operationsBetween(before, after));
  }

  plans(storage: Pick<Storage, "kv" | "blobs"> = this.storage): PlanStore {
    return createPlanStore(storage, { root: this.root, rootKey: sha256Hex(this.root) });
  }

  async apply(overrides: Partial<ApplyOptions> = {}): Promise<AppliedPlan & Disposable> {
    const fileSystem = overrides.fileSystem ?? nodeFileSystem;
    const root = Directory.open(fileSystem, this.dir);
    try {
      const applied = await applyPlan({
        canonicalRoot: this.root,
        operations: this.operations,
        planId,
        purpose: { for: "test" },
        store: this.store,
        plans: this.plans(),
        assertHeld: () => undefined,
        ...overrides,
        root,
        fileSystem,
      });
      return { ...applied, [Symbol.dispose]: () => root.close() };
    } catch (error) {
      root.close();
      throw error;
    }
  }

  /** Settles what is left and finishes; undefined when there is nothing. */
  async settle(fileSystem: FileSystem = nodeFileSystem, plans = this.plans()): Promise<SettledPlan | undefined> {
    const plan = await plans.read();
    if (plan === undefined) return undefined;
    const root = Directory.open(fileSystem, this.dir);
    try {
      const settled = await settlePlan({
        root,
        plan,
        store: this.store,
        plans,
        fileSystem,
        assertHeld: () => undefined,
      });
      await settled.finish();
      return settled;
    } finally {
      root.close();
    }
  }

  tree(): Record<string, Node> {
    return readTree(this.dir);
  }

  [Symbol.dispose](): void {
    removeDirectory(this.dir);
    if (this.outside !== undefined) removeDirectory(this.outside);
  }
}

/**
 * The real file system without its waits: a process that dies, unlike a machine, loses nothing that was not synced.
 * What has to be synced is counted all the same.
 */
export const unsyncedFileSystem: FileSystem = {
  ...nodeFileSystem,
  fsync: () => undefined,
  fsyncLater: async () => undefined,
};

/** Thrown by everything once the process is "dead". */
export class Killed extends Error {}

/** A clock of effects: `tick` is called before each one, and on storage before each change. */
export function ticking(
  storage: Storage,
  tick: (
    call: FileSystemCall | { readonly name: string; readonly effect: true; readonly args: readonly unknown[] },
  ) => void,
): { readonly fileSystem: FileSystem; readonly storage: Pick<Storage, "kv" | "blobs"> } {
  const wrap = <T extends object>(target: T, changing: ReadonlySet<string>): T =>
    new Proxy(target, {
      get(object, name, receiver) {
        const value: unknown = Reflect.get(object, name, receiver);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          if (typeof name === "string" && changing.has(name)) tick({ name, effect: true, args });
          return (value as (...args: unknown[]) => unknown).apply(object, args);
        };
      },
    });
  return {
    fileSystem: interceptFileSystem(unsyncedFileSystem, tick),
    storage: {
      kv: wrap(storage.kv, new Set(["set", "delete"])),
      blobs: wrap(storage.blobs, new Set(["put", "delete"])),
    },
  };
}

export interface Killer {
  readonly fileSystem: FileSystem;
  readonly storage: Pick<Storage, "kv" | "blobs">;
  /** Effects that were carried out or refused. */
  count(): number;
  dead(): boolean;
}

/** Dies at the effect with the number given (from 1): it and everything after it throws and does nothing. */
export function killAt(storage: Storage, number: number): Killer {
  let effects = 0;
  let dead = false;
  const ticked = ticking(storage, (call) => {
    if (call.effect && ++effects === number) dead = true;
    if (dead && call.name !== "close") throw new Killed();
  });
  return { ...ticked, count: () => effects, dead: () => dead };
}

/** Fails the effect with the number given, and with `forever` every one after it; `late` fails it after it was done. */
export function failAt(
  storage: Storage,
  number: number,
  errno: string,
  when: "once" | "forever" | "late" = "once",
): Omit<Killer, "dead"> & { readonly fired: () => string | undefined } {
  let effects = 0;
  let fired: string | undefined;
  const failure = (name: string): Error => Object.assign(new Error(`${errno}: ${name}`), { code: errno });
  const fails = (name: string): boolean => {
    effects++;
    const now = effects === number || (when === "forever" && effects > number);
    if (now) fired ??= name;
    return now;
  };
  const ticked = ticking(storage, ({ name, effect }) => {
    if (when !== "late" && effect && fails(name)) throw failure(name);
  });
  if (when !== "late") return { ...ticked, count: () => effects, fired: () => fired };
  const fileSystem = Object.fromEntries(
    Object.entries(ticked.fileSystem).map(([name, method]) => {
      const call = method as (...args: unknown[]) => unknown;
      if (name !== "rename" && name !== "link" && name !== "unlink" && name !== "mkdir" && name !== "rmdir")
        return [name, call];
      return [
        name,
        (...args: unknown[]) => {
          const result = call(...args);
          if (fails(name)) throw failure(name);
          return result;
        },
      ];
    }),
  ) as unknown as FileSystem;
  return { fileSystem, storage: ticked.storage, count: () => effects, fired: () => fired };
}
