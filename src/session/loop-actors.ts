/** The loops of a session: started once each, bound to its tree, and given back what was said in them. */
import { mintLoopId } from "../core/index.js";
import type { LoopId, SessionId } from "../core/index.js";
import { OutputShelf, emptyConversation, withEvents } from "../loop/index.js";
import type { LoopDefinition, TurnTool } from "../loop/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import { bindTools } from "../tool/index.js";
import type { AvailableBindings } from "../tool/index.js";
import { createCommitSection, createObservations } from "../workspace/index.js";
import type { LoopActor, SessionTree } from "./parts.js";

/** Every loop that must live, with the id it has, and the events that start those that are new. */
export async function startLoops(
  sessionId: SessionId,
  definitions: readonly LoopDefinition[],
  tree: SessionTree | undefined,
  ended: AbortSignal,
  before: readonly SessionEvent[],
): Promise<{ readonly actors: ReadonlyMap<string, LoopActor>; readonly started: readonly NewEvent[] }> {
  const known = new Map<string, LoopId>();
  for (const event of before) {
    if (event.type === "loop-started" && event.loopId !== undefined) known.set(event.name, event.loopId);
  }
  const actors = new Map<string, LoopActor>();
  const started: NewEvent[] = [];
  for (const definition of definitions) {
    const { name } = definition;
    const loopId = known.get(name) ?? mintLoopId();
    if (!known.has(name)) started.push({ type: "loop-started", name, loopId });
    // Of this loop alone, and empty after every restart (C8).
    const observations =
      tree === undefined ? undefined : createObservations({ root: tree.workspace.root, fold: tree.owned.fold });
    const outputs = hasRead(definition) ? new OutputShelf() : undefined;
    actors.set(name, {
      loopId,
      definition,
      observations,
      outputs,
      tools: await bindAll(definition, available({ sessionId, loopId, ended }, tree, { observations, outputs })),
      conversation: withEvents(emptyConversation, before, loopId),
    });
  }
  return { actors, started };
}

/** The loop that input goes to: the last one it was given to that is still there. */
export function activeLoop(events: readonly SessionEvent[], loops: readonly string[], fallback: string): string {
  const changed = events.findLast((event) => event.type === "active-loop-changed" && loops.includes(event.name));
  return changed?.type === "active-loop-changed" ? changed.name : fallback;
}

/** Whether the loop has the built-in tool that kept outputs are read with. */
const hasRead = ({ tools }: LoopDefinition): boolean =>
  tools.some(({ name, produces }) => name === "files" && produces.includes("Read"));

async function bindAll(
  definition: LoopDefinition,
  bindings: AvailableBindings,
): Promise<ReadonlyMap<string, TurnTool>> {
  const tools = new Map<string, TurnTool>();
  for (const each of definition.tools) {
    for (const [name, tool] of await bindTools(each, bindings)) tools.set(name, tool);
  }
  return tools;
}

function available(
  of: Pick<AvailableBindings, "sessionId" | "loopId" | "ended">,
  tree: SessionTree | undefined,
  { observations, outputs }: Pick<LoopActor, "observations" | "outputs">,
): AvailableBindings {
  if (tree === undefined) return of;
  const { root } = tree.workspace;
  const { placement, storage, fileSystem } = tree.owned.reader;
  return {
    ...of,
    workspace: {
      ...{ root, coordinator: tree.owned.recorder.coordinator, recording: true, observations, outputs },
      ...(placement === "shared"
        ? { commits: createCommitSection({ leaser: storage.leaser, root, sessionId: of.sessionId, fileSystem }) }
        : {}),
    },
    readWorkspace: { root },
  };
}
