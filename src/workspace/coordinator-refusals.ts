/** The errors the coordinator answers with. Functions return the error; the caller throws it. */
import { CoordinatorError, displayName, WorkspaceRootLeaseLostError } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import type { MutationScope } from "./coordinator-contract.js";
import { describeScope } from "./coordinator-scope.js";

export const canceled = ({ operation }: MutationScope, cause: unknown): CoordinatorError =>
  new CoordinatorError(
    "coordinator.acquire_canceled",
    `Cannot acquire a permit for ${operation}: the wait was cancelled; nothing is held`,
    { operation },
    { cause },
  );

export const revoked = (scope: MutationScope): CoordinatorError =>
  new CoordinatorError(
    "coordinator.revoked",
    `Cannot go on with ${describeScope(scope)}: the permit was released or taken away; write nothing, and acquire a new one`,
    { operation: scope.operation },
  );

export const reentry = (scope: MutationScope, held: MutationScope): CoordinatorError =>
  new CoordinatorError(
    "coordinator.reentry",
    `Cannot acquire a permit for ${describeScope(scope)}: this call has one for ${describeScope(held)} already; use that, or release it first`,
    { operation: scope.operation, held: describeScope(held) },
  );

export const deadlock = (scope: MutationScope, held: MutationScope): CoordinatorError =>
  new CoordinatorError(
    "coordinator.deadlock",
    `Cannot wait for a permit for ${describeScope(scope)}: whoever has it waits for this call's ${describeScope(held)}; release that first, or ask for all paths at once`,
    { operation: scope.operation, held: describeScope(held) },
    { retryable: true },
  );

export const leaseLost = (root: CanonicalRoot, cause: unknown): WorkspaceRootLeaseLostError =>
  new WorkspaceRootLeaseLostError(
    "workspace_root.lease_lost",
    `Cannot go on in ${displayName(root)}: its lease was lost, and another session may have it; nothing was committed after that`,
    { root },
    { cause },
  );
