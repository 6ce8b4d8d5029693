/** The workspace that holds its root: what the view shows, and everything that may change files. */
import path from "node:path";
import { LooprigError, SessionBusyError, isLooprigError, signalOf } from "../core/index.js";
import type { Abortable, SessionId } from "../core/index.js";
import type { CaptureResult } from "../workspace-store/index.js";
import { checkExec, invalid } from "./capture-rules.js";
import { canonicalPath } from "./canonical-path.js";
import { Attribution } from "./attribution.js";
import type { ChangedBy } from "./changed-by.js";
import { describeChange } from "./file-diff.js";
import type {
  Change,
  Checkpoint,
  ExecOptions,
  ExecResult,
  RedoOptions,
  RefLike,
  RestoreAction,
  RestoreOptions,
  RestorePlan,
  RestoreReceipt,
  UndoOptions,
  Workspace,
} from "./contracts.js";
import { runTurn } from "./exec-turn.js";
import type { FinishedTurn } from "./exec-turn.js";
import { inWindow } from "./turn-record.js";
import { OwnWindow } from "./own-window.js";
import type { OwnedRoot } from "./owned-root.js";
import { makePlan } from "./planning.js";
import { PresentRoot } from "./present-root.js";
import { rebuildRoot } from "./rebuild-root.js";
import { applyToRoot } from "./restoring.js";
import { settlePlans } from "./settle-plans.js";
import { RootView } from "./view.js";

export class OwnedWorkspace extends RootView implements Workspace {
  readonly #owned: OwnedRoot;
  readonly #own: OwnWindow;
  readonly #closeStorage: () => Promise<void>;
  #doing: string | undefined;
  /** Settles when what is under way has ended, however it did. */
  #done: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;
  /** A plan may be waiting that is to be settled before anything else is done (U9). */
  #settleFirst = false;

  constructor(owned: OwnedRoot, closeStorage: () => Promise<void>) {
    super(owned.reader, async () => undefined);
    this.#owned = owned;
    this.#own = new OwnWindow(owned);
    this.#closeStorage = closeStorage;
  }

  get sessionId(): SessionId {
    return this.#owned.sessionId;
  }

  protected override asker(): SessionId {
    return this.sessionId;
  }

  /** The checkpoint of opening: what this program does from here on can be taken back. */
  async takeBaseline(options: Abortable = {}): Promise<void> {
    await this.#while("baseline", async () => {
      using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" }, signalOf(options));
      const { checkpoint } = await this.#owned.checkpoint({ trigger: "baseline", signal: options.signal });
      this.#own.begin(checkpoint);
    });
  }

  async checkpoint(
    options: Abortable & { readonly label?: string | undefined } = {},
  ): Promise<Checkpoint & { readonly unchanged: boolean }> {
    checkLabel(options.label);
    return this.#while("checkpoint", async () => {
      using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" }, signalOf(options));
      const before = await this.#owned.newestRef(signalOf(options));
      const { checkpoint } = await this.#owned.checkpoint({
        trigger: "manual",
        label: options.label,
        signal: options.signal,
      });
      this.#own.begin(checkpoint);
      return { ...checkpoint, unchanged: before === checkpoint.ref };
    });
  }

  override async plan(action: RestoreAction, options: Abortable = {}): Promise<RestorePlan> {
    if (this.#owned.missing) return super.plan(action, options);
    this.#owned.directory();
    return this.#while("plan", () => this.#planNow(action, signalOf(options)));
  }

  async apply(plan: RestorePlan, options: Abortable = {}): Promise<RestoreReceipt> {
    return this.#while(plan.action, () => this.#apply(plan, { ...signalOf(options), fresh: false }));
  }

  async undo(options: Abortable & UndoOptions = {}): Promise<RestoreReceipt> {
    return this.#do({ kind: "undo", ...options }, signalOf(options));
  }

  async redo(options: Abortable & RedoOptions = {}): Promise<RestoreReceipt> {
    return this.#do({ kind: "redo", ...options }, signalOf(options));
  }

  async restore(ref: RefLike, options: Abortable & RestoreOptions = {}): Promise<RestoreReceipt> {
    return this.#do({ kind: "restore", ref, ...options }, signalOf(options));
  }

  async firstChangeNotice(): Promise<boolean> {
    let first = false;
    await this.reader.record.update((data) => {
      first = !data.noticed;
      return { ...data, noticed: true };
    });
    return first;
  }

  async exec(command: readonly [string, ...string[]], options: ExecOptions = {}): Promise<ExecResult> {
    checkExec(command, options);
    const cwd = this.#workingDirectory(options.cwd);
    return this.#while(`exec ${command[0]}`, async () => {
      this.#own.forget();
      const turn = await runTurn(this.#owned, command, cwd, options);
      const failed = options.undoOnFailure === true && turn.exit.exitCode !== 0;
      const undo = failed ? await this.#undoTurn(turn.number, options) : { undone: false };
      return this.#execResult(turn, command.join(" "), undo, signalOf(options));
    });
  }

  override close(): Promise<void> {
    this.#closed ??= (async () => {
      try {
        await this.#owned.append({ type: "session-closed" });
      } catch (error) {
        // A session that lost its lease has nothing left to say; whoever took over settles it.
        if (!isLooprigError(error, "lease.lost", "ledger.fenced")) throw error;
      } finally {
        await this.#owned.release();
        await this.#closeStorage();
      }
    })();
    return this.#closed;
  }

  async #execResult(
    turn: FinishedTurn,
    command: string,
    undo: Pick<ExecResult, "undone" | "undoFailure">,
    options: Abortable,
  ): Promise<ExecResult> {
    const { number, turnId, callId, exit, durationMs, from, to, checkpoints } = turn;
    const changes: Change[] = [];
    if (to !== undefined) {
      // Its own window is what says whose these are. Others are looked at only where there can be any.
      const ours = { kind: "session", strength: "window", sessionId: this.sessionId, turnId, turn: number } as const;
      const by: ChangedBy = { ...ours, callId, command };
      const others = this.#owned.shared ? await this.#attributionSince(turn.openOrder, options) : undefined;
      const { openOrder, closeOrder } = turn;
      const span = { openOrder, closeOrder, strength: "window", uncertain: true } as const;
      for await (const change of this.reader.store.diff(from, to, options)) {
        const overlaps = others?.overlaps(inWindow(change, span), this.sessionId) ?? [];
        changes.push(describeChange(change, overlaps.length === 0 ? by : { ...by, overlaps }));
      }
    }
    return { ...exit, turn: number, changes, checkpoints, durationMs, protected: to !== undefined, ...undo };
  }

  async #attributionSince(order: number, options: Abortable): Promise<Attribution> {
    return Attribution.load(this.reader.store, await this.reader.history(options), order - 1, options);
  }

  /** `undoOnFailure`. When it cannot be, the command's own result is never lost over it. */
  async #undoTurn(number: number, options: ExecOptions): Promise<Pick<ExecResult, "undone" | "undoFailure">> {
    const action: RestoreAction = { kind: "undo", turn: `t${number}`, includeWindow: options.includeWindow };
    try {
      const plan = await this.#planNow(action, signalOf(options));
      return { undone: (await this.#apply(plan, { ...signalOf(options), fresh: true })).result === "done" };
    } catch (error) {
      if (isLooprigError(error)) return { undone: false, undoFailure: error };
      throw error;
    }
  }

  async #do(action: RestoreAction, options: Abortable): Promise<RestoreReceipt> {
    return this.#while(action.kind, async () => {
      if (this.#owned.missing) return this.#rebuild(action, options);
      return this.#apply(await this.#planNow(action, options), { ...options, fresh: true });
    });
  }

  async #planNow(action: RestoreAction, options: Abortable): Promise<RestorePlan> {
    this.#owned.directory();
    // What this program did by itself becomes a turn first, so that a plan can take it back and `apply` finds it there.
    const captured = action.kind === "redo" ? undefined : await this.#own.close(options);
    const history = await this.reader.history(options);
    const present = new PresentRoot(this.reader, options, async () => captured ?? (await this.#captureBefore(options)));
    return makePlan(this.reader, action, { history, present, asker: this.sessionId }, options);
  }

  /** Stored at once: it is what the plan would write over (U4). */
  async #captureBefore(options: Abortable): Promise<CaptureResult> {
    using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" }, options);
    return await this.#owned.capture({ trigger: "pre-restore", ...options });
  }

  async #apply(plan: RestorePlan, options: Abortable & { readonly fresh: boolean }): Promise<RestoreReceipt> {
    this.#own.forget();
    try {
      return await applyToRoot(this.#owned, plan, options);
    } catch (error) {
      this.#settleFirst = true;
      throw error;
    }
  }

  async #settle(): Promise<void> {
    if (!this.#owned.missing) await settlePlans(this.#owned);
    this.#settleFirst = false;
  }

  async #rebuild(action: RestoreAction, options: Abortable): Promise<RestoreReceipt> {
    if (action.kind !== "restore" || action.paths !== undefined) {
      throw invalid(
        "action",
        action.kind,
        "a restore of the whole tree: the root is gone and has to be built anew first",
      );
    }
    return rebuildRoot(this.#owned, action.ref, options);
  }

  #workingDirectory(cwd: string | undefined): string {
    this.#owned.directory();
    if (cwd === undefined) return this.root;
    const resolved = canonicalPath(path.resolve(this.root, cwd));
    if (resolved !== this.root && !resolved.startsWith(`${this.root}/`)) {
      throw invalid("cwd", cwd, `a directory inside ${this.root}`);
    }
    return resolved;
  }

  /** The turn of a loop, as one thing that is under way here; waits for what is under way before it. */
  async during<T>(doing: string, work: () => Promise<T>): Promise<T> {
    while (this.#doing !== undefined) await this.#done;
    this.#own.forget();
    return this.#while(doing, work);
  }

  /** One thing at a time (K6, U6). */
  async #while<T>(doing: string, work: () => Promise<T>): Promise<T> {
    if (this.#closed !== undefined) {
      throw new LooprigError("workspace.closed", `Cannot use the workspace "${this.root}": it was closed`, {
        root: this.root,
      });
    }
    if (this.#doing !== undefined) {
      throw new SessionBusyError(
        "session.busy",
        `Cannot begin ${doing} in "${this.root}": ${this.#doing} is under way; wait for its end, in a session with \`await session.idle()\``,
        {
          sessionId: this.sessionId,
          doing: this.#doing,
        },
        { retryable: true },
      );
    }
    this.#doing = doing;
    // In a shared root it may be another session's, killed since this one was opened.
    const working = this.#settleFirst || this.#owned.shared ? this.#settle().then(work) : work();
    this.#done = working.catch(() => undefined);
    try {
      return await working;
    } finally {
      this.#doing = undefined;
    }
  }
}

function checkLabel(label: string | undefined): void {
  if (label === undefined) return;
  if (
    typeof label !== "string" ||
    label.trim() === "" ||
    label.length > 200 ||
    /[\u0000-\u001f\u007f\ufffd]/.test(label)
  ) {
    throw invalid("label", label, "a line of 1 to 200 characters");
  }
  // What reads as something else could never be asked for again (G7).
  if (label.includes(":") || /^(?:[ct][1-9]\d*\^?|now|last|[0-9a-f]{8,64})$/.test(label)) {
    throw invalid(
      "label",
      label,
      "a text that is no reference: not c12, t4, now, last, hex digits, and without a colon",
    );
  }
}
