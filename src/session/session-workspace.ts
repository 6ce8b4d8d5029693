/** The workspace of a session with loops: closing it closes the session, and never takes the root from under a turn. */
import { OwnedWorkspace } from "../workspace/index.js";
import type { OwnedRoot } from "../workspace/index.js";

export class SessionWorkspace extends OwnedWorkspace {
  #closeSession: () => Promise<void> = () => this.release();

  constructor(owned: OwnedRoot) {
    super(owned, async () => undefined);
  }

  /** Who is asked to close from now on. */
  ownedBy(closeSession: () => Promise<void>): void {
    this.#closeSession = closeSession;
  }

  override close(): Promise<void> {
    return this.#closeSession();
  }

  /** `session-closed`, then the leases, once what is under way here has ended (K6). */
  release(): Promise<void> {
    return this.during("closing", () => super.close());
  }
}
