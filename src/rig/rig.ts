/** The rig: a frozen assembly of which any number of sessions are started. It holds no state and owns nothing. */
import { LooprigError, parseRef, parseSessionId, WorkspaceUnavailableError } from "../core/index.js";
import type { Abortable, LoopId, SessionId, SnapshotRef } from "../core/index.js";
import type { ResumeOptions, Session, SessionDefinition, StartOptions } from "../session/index.js";
import type { Workspace } from "../workspace/index.js";
import { compareManifests } from "./drift.js";
import type { RigManifest } from "./manifest.js";
import { shown } from "./refusals.js";
import type { Members } from "./refusals.js";

export interface StartSessionOptions extends Abortable {
  /** A captured tree to begin with (E4): for session roots and empty exclusive ones. */
  readonly seed?: SnapshotRef | (string & {}) | undefined;
  /** Accepts the directory that stands at a fixed root, though another one was recorded (R7). */
  readonly root?: "adopt" | undefined;
}
/**
 * How a stored session is gone on with.
 *
 * - `root`: `"adopt"` accepts the directory that stands at the root although it is not the recorded one; `"recreate"` builds one that is
 *   gone anew from the newest checkpoint (R7). Default: a fixed root that was replaced or is gone rejects with `workspace_root.changed`.
 * - `onDrift`: called at most once, with every difference of the configuration; decides on all of them (R5). Default: breaking ones
 *   reject with `configuration.drift`, notable ones are adopted and journaled.
 * - `signal`: an abort rejects with its reason; nothing is held then.
 */
export type ResumeSessionOptions = Omit<ResumeOptions, "drift">;

interface AnyRigSession<Name extends string> extends Omit<Session, "setActiveLoop" | "workspace"> {
  setActiveLoop(name: Name): Promise<LoopId>;
}
/** Throws `workspace.unavailable` in a session without one; that is only where the compiler does not know. */
type WorkspaceOf<W extends boolean> = [W] extends [true]
  ? { readonly workspace: Workspace }
  : [W] extends [false]
    ? unknown
    : { readonly workspace?: Workspace };

/** A session, as far as its rig's type knows more of it: its loops by name, and whether it has a workspace (P2). */
export type RigSession<Name extends string = string, W extends boolean = boolean> = AnyRigSession<Name> &
  WorkspaceOf<W>;

/** A rig: `Name` is the union of its loops' names, `W` whether its sessions have a workspace. */
export interface Rig<Name extends string = string, W extends boolean = boolean> {
  /** The sha256 of the manifest's canonical JSON, in lowercase hex (R4). */
  readonly fingerprint: string;
  readonly manifest: RigManifest;
  /**
   * Starts a session, with an id of its own, in the rig's placement. Rejects with `option.invalid`, `ref.invalid`,
   * `workspace.unavailable` (a seed without a placement), and what taking the root may meet; nothing is held then.
   */
  startSession(options?: StartSessionOptions): Promise<RigSession<Name, W>>;
  /**
   * Goes on with a stored session. Rejects with `session_id.invalid`, `session.unknown`, `configuration.drift` (R5),
   * `workspace_root.*`; nothing is held then.
   */
  resumeSession(id: SessionId | (string & {}), options?: ResumeSessionOptions): Promise<RigSession<Name, W>>;
}

/** What starts sessions; the runtime's own in every program, another one in tests. */
export interface SessionRuntime {
  startSession(definition: SessionDefinition, options: StartOptions): Promise<Session>;
  resumeSession(definition: SessionDefinition, id: SessionId, options: ResumeOptions): Promise<Session>;
}

export function createRig(definition: SessionDefinition, manifest: RigManifest, runtime: SessionRuntime): Rig {
  /** The session says of itself what holds for all; the rig's type knows its loops and whether it has a workspace. */
  const typed = (session: Session): RigSession => session;
  return Object.freeze({
    fingerprint: definition.fingerprint,
    manifest,
    startSession: async (options = {}) => {
      refuseUnknown(options, ["seed", "root", "signal"]);
      const { seed, root, signal } = options;
      if (root !== undefined) assertPlaced(definition, "root");
      if (!([undefined, "adopt"] as unknown[]).includes(root)) throw wrongOption("root", root, '"adopt"');
      if (seed === undefined) return typed(await runtime.startSession(definition, { signal, root }));
      assertPlaced(definition, "seed");
      return typed(await runtime.startSession(definition, { signal, root, seed: parseRef(textOf(seed, "seed")) }));
    },
    resumeSession: async (id, options = {}) => {
      refuseUnknown(options, ["root", "onDrift", "signal"]);
      const sessionId = parseSessionId(textOf(id, "id"));
      const { root, onDrift, signal } = options;
      if (root !== undefined) assertPlaced(definition, "root");
      if (!([undefined, "adopt", "recreate"] as unknown[]).includes(root)) {
        throw wrongOption("root", root, '"adopt" or "recreate"');
      }
      if (onDrift !== undefined && typeof onDrift !== "function") throw wrongOption("onDrift", onDrift, "a function");
      return typed(
        await runtime.resumeSession(definition, sessionId, { root, onDrift, signal, drift: compareManifests }),
      );
    },
  } satisfies Rig);
}

function assertPlaced({ placement }: SessionDefinition, option: string): void {
  if (placement !== undefined) return;
  throw new WorkspaceUnavailableError(
    "workspace.unavailable",
    `Cannot begin the session with "${option}": its rig has no placement, so it has no workspace; define the rig with one`,
    {},
  );
}

function refuseUnknown(options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) throw wrongOption("options", options, "an object");
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw wrongOption(unknown, (options as Members)[unknown], `one of ${known.join(", ")}`);
}

function textOf(given: unknown, field: string): string {
  if (typeof given !== "string") throw wrongOption(field, given, "a text");
  return given;
}

const wrongOption = (field: string, given: unknown, wanted: string): LooprigError<"option.invalid"> =>
  new LooprigError("option.invalid", `Cannot use ${shown(given)} as \`${field}\`: wanted ${wanted}`, {
    ...{ field, wanted },
    given: shown(given),
  });
