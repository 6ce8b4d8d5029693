/** What a session is made of, for the files that each do a part of its work. */
import type { FileSystem, LoopId } from "../core/index.js";
import type { Conversation, LoopDefinition, OutputShelf, Timer, TurnTool } from "../loop/index.js";
import type { OwnedObservations, OwnedRoot } from "../workspace/index.js";
import type { SessionWorkspace } from "./session-workspace.js";

/** A loop of this session: its definition, its tools, and what has been said. */
export interface LoopActor {
  readonly loopId: LoopId;
  readonly definition: LoopDefinition;
  readonly tools: ReadonlyMap<string, TurnTool>;
  /** What its tools saw of the tree; absent where there is none (C8). */
  readonly observations: OwnedObservations | undefined;
  /** Outputs too long to be shown; absent where no tool of the loop could read them. */
  readonly outputs: OutputShelf | undefined;
  conversation: Conversation;
}

/** The tree, where the rig has a placement. */
export interface SessionTree {
  readonly owned: OwnedRoot;
  readonly workspace: SessionWorkspace;
}

/** What a session takes from outside; tests put in their own. */
export interface SessionWorld {
  readonly fileSystem?: FileSystem | undefined;
  readonly timer?: Timer | undefined;
}
