/**
 * Which call is running, as far as one build of tools is concerned. A tool acquires permits from the binding of its build,
 * and the coordinator has to know whose they are: to refuse a call what it holds already (C4) and to take everything from a
 * call that was given up (C6). The tool does not say so itself, because it could say the wrong thing.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ChangeRecords, WorkspaceCoordinator } from "../workspace/index.js";

/** The coordinator as the call sees it, and what it may put on record where a journal of changes is kept. */
export type CallView = WorkspaceCoordinator & { readonly records?: ChangeRecords | undefined };

interface Running {
  readonly scope: CallScope;
  readonly coordinator: CallView;
}

// One for all builds: each instance would add to the cost of every promise in the process.
const running = new AsyncLocalStorage<Running>();

export class CallScope {
  /** Runs `work`, and all that it starts, as a call that `coordinator` is the view of. */
  run<T>(coordinator: CallView, work: () => T): T {
    return running.run({ scope: this, coordinator }, work);
  }

  /** The view of the running call; undefined outside of one, as in `build`, and in a call of another build. */
  current(): CallView | undefined {
    const call = running.getStore();
    return call?.scope === this ? call.coordinator : undefined;
  }
}
