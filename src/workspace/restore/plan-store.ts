/**
 * Keeps the plan of a root: a pointer in KV, which is the only thing that changes, and the record it names in blobs
 * (docs/formats/plans.md). One plan per root at a time; the caller holds the right to write to the root.
 */
import { randomBytes } from "node:crypto";
import { canonicalJson, RestoreError, sha256Hex } from "../../core/index.js";
import type { Abortable, CanonicalRoot, Json, PlanId, WorkspacePath } from "../../core/index.js";
import type { Blobs, Kv, KvEntry, Storage } from "../../storage/index.js";
import { decodePlan, encodePlan } from "./plan-record.js";
import type { PlanPhase, PlanRecord } from "./plan-record.js";

export interface StoredPlan {
  readonly phase: PlanPhase;
  readonly record: PlanRecord;
  /** Paths the settling of a crashed plan had to leave; known in phase "committed". */
  readonly skipped: readonly WorkspacePath[];
}

/** Where one root's plan is kept. Every call is durable on return. */
export interface PlanStore {
  /** The unsettled plan of the root, or undefined. `restore.plan_damaged` when its record cannot be read. */
  read(options?: Abortable): Promise<StoredPlan | undefined>;
  /** Stores a new plan in phase "staging". `restore.unsettled` when the root has one already. */
  create(record: PlanRecord, options?: Abortable): Promise<void>;
  /** Stores the record anew, with other names, in phase "staging". */
  rewrite(record: PlanRecord): Promise<void>;
  advance(planId: PlanId, phase: PlanPhase, skipped?: readonly WorkspacePath[]): Promise<void>;
  /** Forgets the plan; one that is gone already is fine. */
  remove(planId: PlanId): Promise<void>;
}

interface StoredBlob {
  readonly key: string;
  readonly parts: number;
  readonly bytes: number;
  readonly sha256: string;
}
interface Pointer {
  readonly v: 0;
  readonly planId: PlanId;
  readonly phase: PlanPhase;
  readonly record: StoredBlob;
  readonly skipped?: StoredBlob;
}

const partBytes = 16 * 1024 * 1024;

/** The plan store of the root whose key (sha256 of the canonical root, lowercase hex) is `rootKey`. */
export function createPlanStore(
  storage: Pick<Storage, "kv" | "blobs">,
  { root, rootKey }: { readonly root: CanonicalRoot; readonly rootKey: string },
): PlanStore {
  return new KvPlanStore(storage.kv, storage.blobs, root, rootKey);
}

class KvPlanStore implements PlanStore {
  readonly #kv: Kv;
  readonly #blobs: Blobs;
  readonly #root: CanonicalRoot;
  readonly #key: string;

  constructor(kv: Kv, blobs: Blobs, root: CanonicalRoot, rootKey: string) {
    this.#kv = kv;
    this.#blobs = blobs;
    this.#root = root;
    this.#key = `plans/${rootKey}`;
  }

  async read(options: Abortable = {}): Promise<StoredPlan | undefined> {
    const entry = await this.#kv.get(this.#key, options);
    if (entry === undefined) return undefined;
    const pointer = this.#parse(entry);
    try {
      const record = await decodePlan(await this.#load(pointer.record, options));
      const skipped =
        pointer.skipped === undefined
          ? []
          : (JSON.parse((await this.#load(pointer.skipped, options)).toString("utf8")) as WorkspacePath[]);
      if (record.planId !== pointer.planId || record.root !== this.#root) throw new Error("it is of another plan");
      return { phase: pointer.phase, record, skipped };
    } catch (error) {
      options.signal?.throwIfAborted();
      // The plan may have been settled and forgotten since the pointer was read: a read-only report holds no lease.
      const now = await this.#kv.get(this.#key, options);
      if (now?.revision !== entry.revision) return this.read(options);
      throw this.#damaged(pointer.planId, error);
    }
  }

  async create(record: PlanRecord, options: Abortable = {}): Promise<void> {
    const entry = await this.#kv.get(this.#key, options);
    if (entry !== undefined) {
      const { planId } = this.#parse(entry);
      throw new RestoreError(
        "restore.unsettled",
        `Cannot begin a restore of "${this.#root}": an earlier one, ${planId}, is not settled; open the root anew to settle it`,
        { root: this.#root, planId },
      );
    }
    await this.#sweep(options);
    const stored = await this.#save(await encodePlan(record), record.planId, options);
    await this.#set({ v: 0, planId: record.planId, phase: "staging", record: stored }, 0, options);
  }

  async rewrite(record: PlanRecord): Promise<void> {
    const { revision } = await this.#mine(record.planId);
    const stored = await this.#save(await encodePlan(record), record.planId);
    await this.#set({ v: 0, planId: record.planId, phase: "staging", record: stored }, revision);
  }

  async advance(planId: PlanId, phase: PlanPhase, skipped: readonly WorkspacePath[] = []): Promise<void> {
    // Read first, always: the answer to an earlier call may have been lost, and its revision with it.
    const { pointer, revision } = await this.#mine(planId);
    const list = skipped.length === 0 ? undefined : await this.#save(Buffer.from(canonicalJson(skipped)), planId);
    const { v, record } = pointer;
    await this.#set({ v, planId, phase, record, ...(list === undefined ? {} : { skipped: list }) }, revision);
  }

  async remove(planId: PlanId): Promise<void> {
    const entry = await this.#kv.get(this.#key);
    if (entry === undefined) return;
    const pointer = this.#parse(entry);
    if (pointer.planId !== planId) return;
    await this.#kv.delete(this.#key, { revision: entry.revision });
    try {
      await this.#sweep();
    } catch {
      // The plan is gone, which is what was asked; blobs that no pointer names go with the next plan of the root.
    }
  }

  async #mine(planId: PlanId): Promise<{ readonly pointer: Pointer; readonly revision: number }> {
    const entry = await this.#kv.get(this.#key);
    const pointer = entry === undefined ? undefined : this.#parse(entry);
    if (entry === undefined || pointer?.planId !== planId) {
      throw this.#damaged(planId, new Error("its pointer is gone"));
    }
    return { pointer, revision: entry.revision };
  }

  #set(pointer: Pointer, revision: number, options: Abortable = {}): Promise<number> {
    return this.#kv.set(this.#key, Buffer.from(canonicalJson(pointer as unknown as Json)), { ...options, revision });
  }

  async #save(bytes: Buffer, planId: PlanId, options: Abortable = {}): Promise<StoredBlob> {
    // Side by side: a directory for each would cost every plan one that is made, synced and never used again.
    const key = `${this.#key}/${planId}.${randomBytes(8).toString("hex")}`;
    const parts = Math.max(1, Math.ceil(bytes.length / partBytes));
    for (let part = 0; part < parts; part++) {
      await this.#blobs.put(`${key}.${part}`, [bytes.subarray(part * partBytes, (part + 1) * partBytes)], options);
    }
    return { key, parts, bytes: bytes.length, sha256: sha256Hex(bytes) };
  }

  async #load({ key, parts, bytes, sha256 }: StoredBlob, options: Abortable): Promise<Buffer> {
    const read: Uint8Array[] = [];
    for (let part = 0; part < parts; part++) read.push(await this.#blobs.get(`${key}.${part}`, options));
    const whole = Buffer.concat(read);
    if (whole.length !== bytes || sha256Hex(whole) !== sha256) throw new Error("its digest does not match");
    return whole;
  }

  /** Removes the blobs of plans that are gone. */
  async #sweep(options: Abortable = {}): Promise<void> {
    for await (const { key } of this.#blobs.list(`${this.#key}/`, options)) await this.#blobs.delete(key, options);
  }

  #parse(entry: KvEntry): Pointer {
    let pointer: Pointer | undefined;
    try {
      pointer = JSON.parse(Buffer.from(entry.value).toString("utf8")) as Pointer;
    } catch (error) {
      throw this.#damaged("unknown", error);
    }
    if ((pointer.v as number) !== 0) throw this.#damaged(pointer.planId, new Error("a newer looprig wrote it"));
    return pointer;
  }

  #damaged(planId: string, cause: unknown): RestoreError {
    return new RestoreError(
      "restore.plan_damaged",
      `Cannot read the plan ${planId} of an unfinished restore of "${this.#root}": ${cause instanceof Error ? cause.message : "unknown"}; ` +
        "the files named .looprig-* in the root are its staged files and backups",
      { root: this.#root, planId },
      { cause },
    );
  }
}
