/**
 * From all that a loop has to exactly what a definition asked for (T1, T3). Everything handed out is made anew for each
 * build, frozen, without a prototype, and has the members of its contract only: a tool cannot reach the object behind it,
 * nor another tool's, and after the end of its loop it has nothing left.
 */
import nodePath from "node:path";
import { onAbort, parseSessionId } from "../core/index.js";
import type { LoopId, SessionId } from "../core/index.js";
import type {
  ChangeRecords,
  CommitSection,
  OwnedCoordinator,
  RecordedPermit,
  WorkspaceCoordinator,
  WorkspacePermit,
} from "../workspace/index.js";
import type {
  DelegateController,
  KeptOutputs,
  PathObservation,
  ProcessBinding,
  ReadWorkspaceBinding,
  WorkspaceBinding,
  WorkspaceObservations,
} from "./bindings.js";
import type { CallScope } from "./call-scope.js";
import { memberOf } from "./capabilities.js";
import type { Capability } from "./capabilities.js";
import { bindingEnded, invalidBinding, missingBinding } from "./refusals.js";

/** All that a loop could give to its tools. */
export interface AvailableBindings {
  readonly sessionId: SessionId;
  readonly loopId: LoopId;
  readonly workspace?: AvailableWorkspace | undefined;
  readonly readWorkspace?: ReadWorkspaceBinding | undefined;
  readonly delegate?: DelegateController | undefined;
  readonly process?: ProcessBinding | undefined;
  /** Aborts when the loop has ended: from then on its bindings answer with `tool_binding.ended`. */
  readonly ended?: AbortSignal | undefined;
}

export interface AvailableWorkspace extends Omit<WorkspaceBinding, "records"> {
  /** With `forCall`, as the session's own has it, permits are known by the call that acquired them. */
  readonly coordinator: WorkspaceCoordinator & Partial<Pick<OwnedCoordinator, "forCall">>;
  /** Whether the calls of this coordinator put their changes on record. */
  readonly recording?: boolean | undefined;
}

const nil = "00000000-0000-0000-0000-000000000000";

/** Throws `tool_definition.missing_binding` or `.invalid_binding`. Looks at nothing that was not required. */
export function attenuate(
  tool: string,
  requires: readonly Capability[],
  available: AvailableBindings,
  calls: CallScope,
): object {
  const { sessionId, loopId, ended } = available;
  const bindings: Record<string, unknown> = {
    sessionId: checkedSessionId(tool, sessionId),
    loopId: checkedLoopId(tool, loopId),
  };
  for (const capability of requires) {
    const member = memberOf[capability];
    const given: unknown = available[member];
    if (given === undefined || given === null) throw missingBinding(tool, capability);
    if (typeof given !== "object") throw invalidBinding(tool, member, "an object");
    bindings[member] = grant(tool, capability, available, ended, calls);
  }
  return narrow(bindings);
}

function grant(
  tool: string,
  capability: Capability,
  available: AvailableBindings,
  ended: AbortSignal | undefined,
  calls: CallScope,
): object {
  switch (capability) {
    case "workspace":
      return workspaceBinding(tool, available.workspace as AvailableWorkspace, ended, calls);
    case "workspace-read": {
      const { root } = available.readWorkspace as ReadWorkspaceBinding;
      return narrow<ReadWorkspaceBinding>({ root: checkedRoot(tool, "readWorkspace.root", root) });
    }
    case "delegate": {
      const delegate = untilEnd(available.delegate as DelegateController, "delegate", ended);
      checkMethods(tool, "delegate", delegate(), ["start"]);
      return narrow<DelegateController>({ start: async (loop, input) => delegate().start(loop, input) });
    }
    case "process": {
      const process = untilEnd(available.process as ProcessBinding, "process", ended);
      checkMethods(tool, "process", process(), ["spawn"]);
      return narrow<ProcessBinding>({ spawn: async (command) => process().spawn(command) });
    }
    default:
      return capability satisfies never;
  }
}

function workspaceBinding(
  tool: string,
  given: AvailableWorkspace,
  ended: AbortSignal | undefined,
  calls: CallScope,
): WorkspaceBinding {
  const { root, coordinator, observations, commits, recording, outputs } = given;
  checkedRoot(tool, "workspace.root", root);
  checkMethods(tool, "workspace.coordinator", coordinator, ["acquire", "assertHealthy"]);
  try {
    coordinator.assertHealthy();
  } catch (error) {
    throw invalidBinding(tool, "workspace.coordinator", "healthy: the root is no longer surely ours", error);
  }
  const ofCoordinator = coordinatorFacade(untilEnd(coordinator, "workspace", ended), calls);
  if (observations !== undefined) {
    checkMethods(tool, "workspace.observations", observations, ["withPath", "invalidateAll"]);
  }
  if (commits !== undefined) checkMethods(tool, "workspace.commits", commits, ["commit"]);
  if (outputs !== undefined) checkMethods(tool, "workspace.outputs", outputs, ["read"]);
  return narrow<WorkspaceBinding>({
    root,
    coordinator: ofCoordinator,
    ...(observations === undefined
      ? {}
      : { observations: observationsFacade(untilEnd(observations, "workspace", ended)) }),
    ...(commits === undefined ? {} : { commits: commitsFacade(untilEnd(commits, "workspace", ended)) }),
    ...(recording === true ? { records: recordsFacade(calls) } : {}),
    ...(outputs === undefined ? {} : { outputs: outputsFacade(untilEnd(outputs, "workspace", ended)) }),
  });
}

const outputsFacade = (owned: () => KeptOutputs): KeptOutputs =>
  narrow<KeptOutputs>({ read: (name) => owned().read(name) });

const commitsFacade = (owned: () => CommitSection): CommitSection =>
  narrow<CommitSection>({ commit: async (step, options) => owned().commit(step, options) });

/** What is recorded is the call's that does it; outside of a call nothing can be. */
const recordsFacade = (calls: CallScope): ChangeRecords => {
  const ofCall = (): ChangeRecords => {
    const records = calls.current()?.records;
    if (records === undefined) throw bindingEnded("workspace");
    return records;
  };
  return narrow<ChangeRecords>({
    acquire: async (paths, options) => recordedFacade(await ofCall().acquire(paths, options)),
    processStarted: async (process) => ofCall().processStarted(process),
    processExited: async (exit) => ofCall().processExited(exit),
  });
};

const coordinatorFacade = (owned: () => WorkspaceCoordinator, calls: CallScope): WorkspaceCoordinator =>
  narrow<WorkspaceCoordinator>({
    acquire: async (scope, options) => {
      const whole = owned();
      return permitFacade(await (calls.current() ?? whole).acquire(scope, options));
    },
    assertHealthy: () => owned().assertHealthy(),
  });

/** A permit as its holder needs it: the one behind it knows the permits of everybody. */
const permitFacade = (permit: WorkspacePermit): WorkspacePermit =>
  narrow<WorkspacePermit>({
    release: () => permit.release(),
    get revoked() {
      return permit.revoked;
    },
    assertHeld: () => permit.assertHeld(),
    [Symbol.dispose]: () => permit.release(),
  });

const recordedFacade = (permit: RecordedPermit): RecordedPermit =>
  narrow<RecordedPermit>({
    release: () => permit.release(),
    get revoked() {
      return permit.revoked;
    },
    assertHeld: () => permit.assertHeld(),
    [Symbol.dispose]: () => permit.release(),
    record: async (changes, options) => permit.record(changes, options),
    keep: async (file) => permit.keep(file),
    openWindow: async (options) => permit.openWindow(options),
  });

const observationsFacade = (owned: () => WorkspaceObservations): WorkspaceObservations =>
  narrow<WorkspaceObservations>({
    withPath: async (path, work) => owned().withPath(path, (observed) => work(pathFacade(observed))),
    invalidateAll: () => owned().invalidateAll(),
  });

const pathFacade = (observed: PathObservation): PathObservation =>
  narrow<PathObservation>({
    get last() {
      return observed.last;
    },
    record: (seen) => observed.record(seen),
  });

/** `target` until the loop ends. Then both the right to use it and the reference are gone. */
function untilEnd<T extends object>(target: T, capability: Capability, ended: AbortSignal | undefined): () => T {
  let held: T | undefined = target;
  const drop = (): void => {
    held = undefined;
  };
  if (ended?.aborted === true) throw bindingEnded(capability);
  if (ended !== undefined) onAbort(ended, drop);
  return () => {
    if (held === undefined) throw bindingEnded(capability);
    return held;
  };
}

/** A frozen object of these members and nothing else, not even what every object inherits. */
function narrow<T extends object>(members: T): T {
  const own = Object.create(null) as T;
  for (const name of Reflect.ownKeys(members)) {
    const descriptor = Object.getOwnPropertyDescriptor(members, name) as PropertyDescriptor;
    const value: unknown = descriptor.value;
    // A function is an object too: nobody may leave a note on it.
    if (typeof value === "function") Object.freeze(value);
    Object.defineProperty(own, name, descriptor);
  }
  return Object.freeze(own);
}

function checkedSessionId(tool: string, given: unknown): SessionId {
  try {
    return parseSessionId(given as string);
  } catch (error) {
    throw invalidBinding(tool, "sessionId", "a lowercase UUID that is not nil", error);
  }
}

function checkedLoopId(tool: string, given: unknown): LoopId {
  if (typeof given !== "string" || given.trim() === "" || given === nil) {
    throw invalidBinding(tool, "loopId", "the id of a loop");
  }
  return given as LoopId;
}

/** T3 asks this of the read root; a relative root would be as wrong where files are written. */
function checkedRoot<T extends string>(tool: string, field: string, root: T): T {
  const given: unknown = root;
  if (typeof given !== "string" || !nodePath.isAbsolute(given) || nodePath.resolve(given) !== given) {
    throw invalidBinding(tool, field, "an absolute, clean path");
  }
  if (given.includes("\0")) throw invalidBinding(tool, field, "a path: it holds a NUL character");
  return root;
}

function checkMethods(tool: string, field: string, given: unknown, names: readonly string[]): void {
  const object = (given ?? {}) as Readonly<Record<string, unknown>>;
  for (const name of names) {
    if (typeof object[name] !== "function") throw invalidBinding(tool, `${field}.${name}`, "a function");
  }
}
