/** Which storage keeps what: `storage` supplies every part that was not given by itself. */
import { RigDefinitionError, WorkspacePlacementError } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { composeStorage } from "./compose-storage.js";
import type { LeaserParts, SessionStoreParts, WorkspaceStoreParts } from "./options.js";
import type { PlacementRequest } from "./placement.js";
import { invalid, within } from "./refusals.js";
import type { Members } from "./refusals.js";

/**
 * The one storage that sessions are given: the caller's own where it supplies everything, else one put together of the parts.
 * Throws `workspace_placement.missing_store`, `.missing_leaser`, `rig_definition.missing_session_store` or `.invalid`.
 */
export function chooseStorage(options: Members, placement: PlacementRequest | undefined): Storage {
  const storage = checkedParts(options["storage"], "storage", sessionStoreParts) as Storage | undefined;
  const given = checkedParts(options["sessionStore"], "sessionStore", sessionStoreParts) as
    SessionStoreParts | undefined;
  const snapshots = placement === undefined ? undefined : snapshotsOf(placement, storage);
  const rootLeases = placement?.mode === "exclusive" ? rootLeasesOf(placement, storage) : undefined;
  const sessions = given ?? storage;
  if (sessions === undefined) {
    throw new RigDefinitionError(
      "rig_definition.missing_session_store",
      'Cannot define the rig: neither "storage" nor "sessionStore" was given; use openLocalStorage() of looprig/storage/local',
      {},
    );
  }
  const parts = {
    sessions,
    snapshots: snapshots ?? withoutTrees(sessions),
    rootLeases: rootLeases ?? sessions,
  };
  const whole = sessions === storage && [snapshots, rootLeases].every((part) => part === undefined || part === storage);
  return whole ? storage : composeStorage(parts);
}

function snapshotsOf(placement: PlacementRequest, storage: Storage | undefined): WorkspaceStoreParts {
  const { option, store } = placement;
  const chosen = checkedParts(store, within(option, "store"), workspaceStoreParts) as WorkspaceStoreParts | undefined;
  // Null is a store that is not there; only what was not mentioned is supplied.
  const found = store === null ? undefined : (chosen ?? storage);
  if (found !== undefined) return found;
  throw new WorkspacePlacementError(
    "workspace_placement.missing_store",
    `Cannot define the rig: "${option}" has no "store" and there is no "storage" to supply it; use openLocalStorage() of looprig/storage/local`,
    { placement: option },
  );
}

function rootLeasesOf(placement: PlacementRequest, storage: Storage | undefined): LeaserParts {
  const { option, leaser } = placement;
  const chosen = checkedParts(leaser, within(option, "leaser"), leaserParts) as LeaserParts | undefined;
  const found = leaser === null ? undefined : (chosen ?? storage);
  if (found !== undefined) return found;
  throw new WorkspacePlacementError(
    "workspace_placement.missing_leaser",
    `Cannot define the rig: "${option}" has no "leaser" and there is no "storage" to supply it; give a storage whose leases are to hold the root`,
    { placement: option },
  );
}

/** Without a placement nothing is captured; what is asked for all the same must not count as a private place. */
const withoutTrees = (sessions: SessionStoreParts): WorkspaceStoreParts => ({
  kv: sessions.kv,
  blobs: sessions.blobs,
  persistencePaths: () => sessions.persistencePaths(),
  locality: "remote",
  spoolDir: undefined,
});

const contracts = { ledger: "append", leaser: "acquire", kv: "get", blobs: "get" } as const;
type Contract = keyof typeof contracts;

const sessionStoreParts: readonly Contract[] = ["ledger", "leaser", "kv", "blobs"];
const workspaceStoreParts: readonly Contract[] = ["kv", "blobs"];
const leaserParts: readonly Contract[] = ["leaser"];

/** `given` if it has the parts, or undefined if it is nothing. */
function checkedParts(given: unknown, field: string, parts: readonly Contract[]): object | undefined {
  if (given === undefined || given === null) return undefined;
  const members = given as Members & Pick<Storage, "persistencePaths">;
  const incomplete = parts.find((part) => {
    const contract = members[part];
    return typeof contract !== "object" || contract === null || !isFunction((contract as Members)[contracts[part]]);
  });
  if (incomplete !== undefined || !isFunction(members.persistencePaths)) {
    throw invalid(field, given, `a storage, or ${parts.join(", ")} and persistencePaths of one`);
  }
  const paths: unknown = members.persistencePaths();
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === "string")) {
    throw invalid(`${field}.persistencePaths()`, paths, "a list of paths");
  }
  if (parts === workspaceStoreParts) assertKeepsTrees(members, field);
  return given;
}

/** Whether private files may be kept there (U13) is not to be guessed. */
function assertKeepsTrees({ locality, spoolDir }: Members, field: string): void {
  if (locality !== "local" && locality !== "remote")
    throw invalid(within(field, "locality"), locality, '"local" or "remote"');
  if (spoolDir !== undefined && typeof spoolDir !== "string")
    throw invalid(within(field, "spoolDir"), spoolDir, "a path, or nothing");
}

const isFunction = (value: unknown): boolean => typeof value === "function";
