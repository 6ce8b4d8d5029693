/**
 * The real thing beside the model: a root on disk, one storage, and the sessions that hold the root. A session is a whole one,
 * with a loop whose model plays what the test says, or a workspace without loops; both have the same verbs.
 */
import { fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { LanguageModel, ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { Session } from "../../src/session/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import type { Lease, Storage } from "../../src/storage/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import type { AnyRig } from "../session/scenes.js";

export type HolderKind = "workspace" | "session" | "resume";

interface Held {
  readonly workspace: Workspace;
  readonly session: Session | undefined;
  readonly leases: Lease[];
}

/** One holder of the root at a time; it can be closed, or lost as a killed process is, and opened again. */
export class Holder {
  readonly #real: Real;
  #held: Held | undefined;
  #lastSession: string | undefined;
  /** What the two tools of the test do when the model calls them, in order. */
  #deeds: (() => void)[] = [];
  #script: LanguageModel = scriptedModel([]);

  constructor(real: Real) {
    this.#real = real;
  }

  get workspace(): Workspace {
    if (this.#held === undefined) throw new Error("the holder is not open");
    return this.#held.workspace;
  }

  get hasLoops(): boolean {
    return this.#held?.session !== undefined;
  }

  async open(kind: HolderKind): Promise<void> {
    const leases: Lease[] = [];
    const storage = await this.#real.storageFor(leases);
    if (kind === "workspace") {
      const { root, shared } = this.#real;
      const workspace = await openWorkspace({ root, storage, shared, baseline: false, command: "model" });
      this.#held = { workspace, session: undefined, leases };
      return;
    }
    const rig = this.#rig(storage);
    const session =
      kind === "resume" && this.#lastSession !== undefined
        ? await rig.resumeSession(this.#lastSession)
        : await rig.startSession();
    this.#lastSession = session.id;
    this.#held = { workspace: session.workspace, session, leases };
  }

  async close(): Promise<void> {
    await (this.#held?.session ?? this.#held?.workspace)?.close();
    this.#held = undefined;
  }

  /** Nothing is closed and nothing said; leases are free as the system frees those of a process that is gone. */
  async lose(): Promise<void> {
    for (const lease of this.#held?.leases ?? []) await lease.release();
    this.#held = undefined;
  }

  /** A turn of the loop: the model calls tools as the steps say; `deeds` are what `Change` and `Outside` do, in their order. */
  async turn(steps: readonly ScriptStep[], deeds: readonly (() => void)[]): Promise<void> {
    this.#script = scriptedModel([...steps, { text: "Done." }]);
    this.#deeds = [...deeds];
    const session = this.#held?.session;
    if (session === undefined) throw new Error("the holder has no loops");
    const turn = await session.submit("work");
    const failed: string[] = [];
    for await (const part of turn)
      if (part.type === "tool-done" && part.outcome !== "ok") failed.push(JSON.stringify(part));
    const result = await turn.done;
    if (result.status !== "done" || failed.length > 0 || this.#deeds.length > 0)
      throw new Error(`a turn went otherwise than written: ${JSON.stringify(result)} ${failed.join()}`);
  }

  #rig(storage: Storage): AnyRig {
    const { root, shared } = this.#real;
    const model: LanguageModel = { ...this.#script, doStream: (options) => this.#script.doStream(options) };
    const tools = [fileTools(), this.#tool("Change", "whole-mutation"), this.#tool("Outside", "checkpoint")];
    return rigDefiner(() => ({}))({
      ...{ storage, snapshots: "manual", loops: [defineLoop({ name: "operator", model, tools })] },
      ...(shared ? { sharedWorkspace: { root } } : { exclusiveWorkspace: { root } }),
    } as Parameters<ReturnType<typeof rigDefiner>>[0]) as unknown as AnyRig;
  }

  /** `Change` is a tool that writes under its permit; `Outside` somebody else, once the window before it is closed. */
  #tool(name: string, operation: "whole-mutation" | "checkpoint") {
    return defineTool({
      name,
      description: name,
      requires: ["workspace"],
      inputSchema: jsonSchema({ type: "object" }),
      execute: async (_input, { workspace }) => {
        using permit = await workspace.coordinator.acquire({ operation });
        permit.assertHeld();
        this.#deeds.shift()?.();
        return "done";
      },
    });
  }
}

export interface RealOptions {
  readonly shared: boolean;
  /** In the state directory, and opened anew by whoever opens; otherwise in memory. */
  readonly local: boolean;
}

export class Real implements AsyncDisposable {
  readonly #place = new Playground("root", { quick: true });
  readonly #storage: Storage | undefined;
  readonly shared: boolean;

  constructor({ shared, local }: RealOptions) {
    this.shared = shared;
    this.#storage = local ? undefined : createMemoryStorage();
  }

  get root(): string {
    return this.#place.root;
  }

  /** A directory beside the root that is not there yet. */
  beside(name: string): string {
    return `${this.#place.dir}/${name}`;
  }

  /** One view of the storage, which notes the leases that are taken through it. */
  async storageFor(leases: Lease[]): Promise<Storage> {
    const storage = this.#storage ?? (await this.#place.storage());
    const { leaser } = storage;
    return {
      ...storage,
      leaser: {
        acquire: async (...claim) => {
          const lease = await leaser.acquire(...claim);
          leases.push(lease);
          return lease;
        },
        inspect: (...asked) => leaser.inspect(...asked),
        list: (...asked) => leaser.list(...asked),
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#place[Symbol.asyncDispose]();
  }
}
