/**
 * Capability by capability: what asking for it in `requires` puts into the hands of a tool (T1). The types below are the
 * whole mechanism at compile time; `attenuation.ts` is the same at run time.
 */
import type { LoopId, SessionId } from "../core/index.js";
import type { DelegateController, ProcessBinding, ReadWorkspaceBinding, WorkspaceBinding } from "./bindings.js";

/** Capability → the members that `build` and `execute` find. */
export interface CapabilityBindings {
  workspace: { readonly workspace: WorkspaceBinding };
  "workspace-read": { readonly readWorkspace: ReadWorkspaceBinding };
  delegate: { readonly delegate: DelegateController };
  process: { readonly process: ProcessBinding };
}
/** What a tool can ask for in `requires` (T1). */
export type Capability = keyof CapabilityBindings;

/** The member that each capability is found under. */
export const memberOf = {
  workspace: "workspace",
  "workspace-read": "readWorkspace",
  delegate: "delegate",
  process: "process",
} as const satisfies { readonly [C in Capability]: keyof CapabilityBindings[C] };

export const isCapability = (word: unknown): word is Capability =>
  typeof word === "string" && Object.hasOwn(memberOf, word);

/**
 * The ids, and exactly the bindings that `R` asks for. Where the compiler knows only that `R` is some list of capabilities,
 * each of them may be absent.
 */
export type BindingsFor<R extends readonly Capability[]> = Flat<Ids & Granted<R>>;

interface Ids {
  readonly sessionId: SessionId;
  readonly loopId: LoopId;
}

type Granted<R extends readonly Capability[]> = R extends readonly []
  ? unknown
  : R extends readonly [infer First extends Capability, ...infer Rest extends readonly Capability[]]
    ? CapabilityBindings[First] & Granted<Rest>
    : Partial<UnionToIntersection<CapabilityBindings[R[number]]>>;

type UnionToIntersection<U> = (U extends unknown ? (u: U) => void : never) extends (i: infer I) => void ? I : never;

/** An intersection as one object type: what editors show and error messages print. */
export type Flat<T> = { [K in keyof T]: T[K] } & {};
