/**
 * What a plan's durable record says to the layer that journals: enough to write `workspace-restored` after a crash, by
 * whatever session settles the plan (U9).
 */
import { canonicalJson, invariant } from "../core/index.js";
import type { Json, SnapshotRef } from "../core/index.js";
import type { RestoreRecord, UndoEntryName } from "../session-store/index.js";

export interface RestorePurpose {
  readonly v: 0;
  readonly action: RestoreRecord["action"];
  /** The entry undone or redone; a restore is named by the checkpoint that ends it. */
  readonly entry?: UndoEntryName | undefined;
  readonly target?: SnapshotRef | undefined;
  readonly from: SnapshotRef;
  readonly kept: RestoreRecord["kept"];
  readonly conflicts: RestoreRecord["conflicts"];
  /** Whether only a part of the entry was asked for (chosen paths): it stays on the undo list as partly undone. */
  readonly partial: boolean;
}

export const toJson = (purpose: RestorePurpose): Json => JSON.parse(canonicalJson(purpose)) as Json;

/** The record's digest was checked by the plan store, so its shape is ours. */
export function parsePurpose(json: Json): RestorePurpose {
  const purpose = json as unknown as RestorePurpose;
  invariant((purpose.v as number) === 0, "BUG: a plan's purpose has another version than its record");
  return purpose;
}
