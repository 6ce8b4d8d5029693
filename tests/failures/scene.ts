/**
 * A root and its state as they are right before an operation, made anew as often as it is cut short. The root stays the same
 * directory, since it is known by its identity (R7).
 */
import fs from "node:fs";
import { file, readTree, writeTree } from "../../src/workspace/restore/testing/trees.js";
import type { Nodes } from "../../src/workspace/restore/testing/trees.js";
import type { Playground } from "../playground.js";
import { leftovers } from "./leftovers.js";
import { countEffects } from "./effects.js";
import { carryOut, isShared } from "./operations.js";
import type { OperationName, Place } from "./operations.js";
import type { TwoTrees } from "./trees.js";

export class Scene implements Place {
  readonly root: string;
  readonly stateDir: string;
  readonly #pristineState: string;
  /** The tree before the operation, and the one that it leaves when nothing disturbs it. */
  readonly before: Nodes;
  /** Restores that are on record before it. */
  readonly restored: number;
  #after: Nodes | undefined;
  #effects = 0;
  #leftovers: readonly string[] = [];

  private constructor(
    readonly operation: OperationName,
    { root, stateDir }: Place,
  ) {
    this.root = root;
    this.stateDir = stateDir;
    this.before = readTree(root);
    this.restored = operation === "redo" || operation === "undo of a restore" ? 1 : 0;
    this.#pristineState = `${stateDir}.pristine`;
    fs.renameSync(stateDir, this.#pristineState);
  }

  static async of(operation: OperationName, { first, second }: TwoTrees, place: Playground): Promise<Scene> {
    replaceTree(place.root, first);
    {
      await using workspace = await place.open({ shared: isShared(operation) });
      await workspace.exec(["true"], { stdio: "ignore", onSpawn: () => replaceTree(place.root, second) });
      if (operation === "redo") await workspace.undo({ includeWindow: true });
      if (operation === "undo of a restore") await workspace.restore("c1", { includeWindow: true });
      if (operation === "undo past a conflict" || operation === "exact restore") {
        writeTree(place.root, { "foreign.txt": file("made by somebody else") });
        fs.writeFileSync(place.at("created"), "edited by somebody else");
      }
    }
    await (await place.storage()).close();
    const scene = new Scene(operation, place);
    await scene.#measure();
    return scene;
  }

  async #measure(): Promise<void> {
    this.renew();
    const world = countEffects(() => undefined);
    await carryOut(this.operation, this, world);
    this.#after = this.tree();
    this.#effects = world.count();
    this.#leftovers = leftovers(this);
  }

  get after(): Nodes {
    return this.#after ?? {};
  }

  /** How many effects it has when nothing disturbs it. */
  get effects(): number {
    return this.#effects;
  }

  /** What an undisturbed one leaves in the places for temporary files. */
  get leftovers(): readonly string[] {
    return this.#leftovers;
  }

  /** Everything is as it was before the operation. */
  renew(): void {
    replaceTree(this.root, this.before);
    fs.rmSync(this.stateDir, { recursive: true, force: true });
    fs.cpSync(this.#pristineState, this.stateDir, { recursive: true, preserveTimestamps: true });
  }

  tree(): Nodes {
    return readTree(this.root);
  }
}

/** Puts a tree into a directory that stays the same one. */
export function replaceTree(root: string, nodes: Nodes): void {
  const empty = (dir: Buffer): void => {
    for (const entry of fs.readdirSync(dir, { encoding: "buffer", withFileTypes: true })) {
      const name = Buffer.concat([dir, Buffer.from("/"), entry.name]);
      if (!entry.isDirectory()) {
        fs.unlinkSync(name);
        continue;
      }
      fs.chmodSync(name, 0o700);
      empty(name);
      fs.rmdirSync(name);
    }
  };
  empty(Buffer.from(root));
  writeTree(root, nodes);
}
