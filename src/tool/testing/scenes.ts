/** What the tests of this feature bind tools to: the real coordinator, and ids that are in order. */
import { LooprigError, mintCallId, mintSessionId } from "../../core/index.js";
import type { CanonicalRoot, ErrorCode, LoopId, LooprigErrorOf } from "../../core/index.js";
import { createCoordinator } from "../../workspace/index.js";
import type { OwnedCoordinator } from "../../workspace/index.js";
import type { AvailableBindings } from "../attenuation.js";
import type { BoundCall } from "../bind.js";
import type { WorkspaceObservations } from "../bindings.js";
import { jsonSchema } from "../json-schema.js";
import { tool } from "../tool.js";
import type { Tool } from "../tool.js";

export const root = "/project" as CanonicalRoot;

export interface Scene extends AvailableBindings {
  readonly coordinator: OwnedCoordinator;
}

/** Everything that a loop could have, and one member more than the contract at every turn. */
export function scene(changes: Partial<AvailableBindings> = {}): Scene {
  const coordinator = createCoordinator({ root });
  const secret = { secret: "not for tools" };
  return {
    ...secret,
    coordinator,
    sessionId: mintSessionId(),
    loopId: mintSessionId() as string as LoopId,
    workspace: { ...secret, root, coordinator, observations: observations() },
    readWorkspace: { ...secret, root },
    delegate: { ...secret, start: async (loop, input) => `${loop}: ${input}` },
    process: { ...secret, spawn: async (command) => command.length },
    ...changes,
  };
}

function observations(): WorkspaceObservations & { readonly secret: string } {
  const seen = new Map<
    string,
    Parameters<Parameters<Parameters<WorkspaceObservations["withPath"]>[1]>[0]["record"]>[0]
  >();
  return {
    secret: "not for tools",
    withPath: (path, work) =>
      work({
        get last() {
          return seen.get(path);
        },
        record: (observed) => void seen.set(path, observed),
      }),
    invalidateAll: () => undefined,
  };
}

export const call = (signal: AbortSignal = new AbortController().signal): BoundCall => ({
  signal,
  callId: mintCallId(),
});

export const anyObject = jsonSchema<Readonly<Record<string, unknown>>>({ type: "object" });

/** A tool that takes any object. */
export const simply = (execute: Tool<Readonly<Record<string, unknown>>>["execute"]): Tool =>
  tool({ description: "Does as the test says", inputSchema: anyObject, execute });

/** The error with one of `codes` that `act` throws or rejects with; anything else fails the test. */
export async function refusalOf<C extends ErrorCode>(code: C, act: () => unknown): Promise<LooprigErrorOf<C>> {
  try {
    await act();
  } catch (error) {
    if (error instanceof LooprigError && error.code === code) return error as LooprigErrorOf<C>;
    throw error;
  }
  throw new Error(`Nothing was refused where ${code} was expected`);
}

/** A value of the wrong type, as plain JavaScript would pass it. */
export const wrong = (value: unknown): never => value as never;
