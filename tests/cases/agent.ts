/** Agents in the cases: sessions of a rig with a scripted model and the built-in tools, on real storage. */
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import type { Json } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { Rig, WorkspaceStoreParts } from "../../src/rig/index.js";
import type { Session, TurnResult } from "../../src/session/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import type { ToolDefinition } from "../../src/tool/index.js";
import type { Playground } from "../playground.js";

const defineRig = rigDefiner(() => ({}));

export interface AgentOptions {
  /** Default false: the session has the root alone. */
  readonly shared?: boolean;
  /** Beside file tools and shell. */
  readonly tools?: readonly ToolDefinition[];
  /** Keeps the captured trees. Default: the storage of `place`. */
  readonly store?: WorkspaceStoreParts;
}

/** A rig on the root of `place` whose model plays `steps`, over as many turns as they make. */
export async function agentRig(
  place: Playground,
  steps: readonly ScriptStep[],
  { shared = false, tools = [], store }: AgentOptions = {},
): Promise<Rig<"agent", true>> {
  const storage = await place.storage();
  const model = scriptedModel(steps);
  const loops = [defineLoop({ name: "agent", model, tools: [fileTools(), bash({ needsApproval: false }), ...tools] })];
  const placement = { root: place.root, store };
  return shared
    ? defineRig({ storage, loops, sharedWorkspace: placement, snapshots: "idle" })
    : defineRig({ storage, loops, exclusiveWorkspace: placement, snapshots: "idle" });
}

/** What a turn came to: how it ended, and the answers its calls got, in the order in which they came. */
export interface PlayedTurn {
  readonly result: TurnResult;
  readonly number: number;
  readonly answers: readonly Extract<SessionEvent, { type: "tool-done" }>[];
}

/** Lets the session work on an input until it rests. */
export async function play(session: Session, input: string): Promise<PlayedTurn> {
  const turn = await session.submit(input);
  const answers: Extract<SessionEvent, { type: "tool-done" }>[] = [];
  for await (const part of turn) if (part.type === "tool-done") answers.push(part);
  const result = await turn.done;
  await session.idle();
  return { result, number: turn.number, answers };
}

/** One call of a tool, as a script has it. */
export const call = (tool: string, input: Json): NonNullable<ScriptStep["calls"]>[number] => ({ tool, input });
