/**
 * The turn of `exec`: a command between two captures (U2).
 *
 * Order, and what a crash after each step leaves:
 * 1. permit for the whole tree, baseline captured        – nothing but a reusable capture
 * 2. `turn-started` with the baseline, in one append      – a turn without a process: it changed nothing of ours
 * 3. command started behind its gate, `process-started`   – the gate closes, the command never ran
 * 4. gate opened; checkpoints at intervals, only if something changed
 * 5. command ends, `process-exited`
 * 6. closing capture; `workspace-checkpointed`, `workspace-changed` and `turn-done` in one append
 * A crash between 4 and 6 leaves an open turn; the next session that takes the root closes it (`settle-sessions`).
 */
import { LooprigError, isLooprigError, mintCallId, mintTurnId, raceAbort } from "../core/index.js";
import type { CallId, SnapshotRef, TurnId } from "../core/index.js";
import type { EventOf, NewEvent, SessionEvent } from "../session-store/index.js";
import type { Tree } from "../workspace-store/index.js";
import { assertRunnable, startGated } from "./command-process.js";
import type { CommandExit, GatedCommand } from "./command-process.js";
import type { Checkpoint, ExecOptions } from "./contracts.js";
import { passSignals } from "./foreground-signals.js";
import { readGitHead } from "./git-head.js";
import { toCheckpoint } from "./history.js";
import type { OwnedRoot, TakenCheckpoint } from "./owned-root.js";

export interface FinishedTurn {
  readonly number: number;
  readonly turnId: TurnId;
  readonly callId: CallId;
  /** The span of its window on the root's clock. */
  readonly openOrder: number;
  readonly closeOrder: number;
  readonly exit: CommandExit;
  /** How long the command ran, without our captures. */
  readonly durationMs: number;
  readonly from: Tree;
  /** Undefined when the closing capture failed: the turn is unprotected. */
  readonly to: Tree | undefined;
  readonly checkpoints: readonly Checkpoint[];
}

const graceMs = 5_000;

export async function runTurn(
  owned: OwnedRoot,
  command: readonly [string, ...string[]],
  cwd: string,
  options: ExecOptions,
): Promise<FinishedTurn> {
  const env: Record<string, string | undefined> = {
    ...process.env,
    ...options.env,
    LOOPRIG_ROOT: owned.reader.root,
    LOOPRIG_SESSION: owned.sessionId,
  };
  assertRunnable(command[0], cwd, env["PATH"]);
  using permit = await owned.coordinator.acquire({ operation: "whole-mutation" }, { signal: options.signal });
  const turn = new Turn(owned, mintTurnId(), mintCallId());
  await turn.begin(command.join(" "), options.signal);

  permit.assertHeld();
  const running = await turn.start(command, { cwd, env, stdio: options.stdio ?? "inherit" });
  // Until the turn is recorded: a second Ctrl-C that was meant for the command must not cost its closing capture.
  const restoreSignals = options.foreground === true ? passSignals((name) => running.signal(name)) : undefined;
  try {
    const { exit, durationMs, interrupted } = await supervise(running, turn, options);
    const finished = await turn.finish(exit, interrupted).catch((error: unknown) => {
      throw interrupted === undefined ? turn.unrecorded(exit, error) : (interrupted as Error);
    });
    if (interrupted !== undefined) throw interrupted as Error;
    return { ...finished, durationMs };
  } finally {
    restoreSignals?.();
  }
}

interface Supervised {
  readonly exit: CommandExit;
  readonly durationMs: number;
  /** The signal's reason when an abort ended the command. */
  readonly interrupted: unknown;
}

/** Step 4: from the opening of the gate to the command's end. */
async function supervise(running: GatedCommand, turn: Turn, options: ExecOptions): Promise<Supervised> {
  const intervals = turn.checkpointEvery(options.everyMs ?? 60_000);
  const startedAt = performance.now();
  let interrupted: unknown;
  try {
    options.onSpawn?.();
    running.release();
    const exit = await raceAbort(running.exit, options.signal).catch(async (reason: unknown) => {
      interrupted = reason;
      return endCommand(running);
    });
    return { exit, durationMs: performance.now() - startedAt, interrupted };
  } finally {
    // A command that was never let through (the caller's hook threw) goes with its gate.
    running.abandon();
    await intervals.stop();
  }
}

class Turn {
  readonly #owned: OwnedRoot;
  readonly #turnId: TurnId;
  readonly #callId: CallId;
  readonly #checkpoints: Checkpoint[] = [];
  #number = 0;
  #openOrder = 0;
  #baseline!: TakenCheckpoint<NewEvent<"workspace-checkpointed">>;
  #latest!: SnapshotRef;

  constructor(owned: OwnedRoot, turnId: TurnId, callId: CallId) {
    this.#owned = owned;
    this.#turnId = turnId;
    this.#callId = callId;
  }

  /** Steps 1 and 2. */
  async begin(input: string, signal: AbortSignal | undefined): Promise<void> {
    const { record, clock, fileSystem, root } = this.#owned.reader;
    // Drawn before the walk: whatever else changes the tree from here on overlaps this window.
    const drawn = await record.draw({ turn: true }, clock(), { signal });
    this.#number = drawn.turn;
    this.#openOrder = drawn.order;
    this.#baseline = await this.#owned.takeAlways({ trigger: "baseline", turnId: this.#turnId, signal });
    this.#latest = this.#baseline.result.ref;
    const head = readGitHead(fileSystem, root);
    await this.#append(
      {
        type: "turn-started",
        number: this.#number,
        order: drawn.order,
        input,
        kind: "command",
        ...(head === undefined ? {} : { head }),
      },
      this.#baseline.event,
    );
  }

  /** Step 3. */
  async start(
    command: readonly [string, ...string[]],
    options: Parameters<typeof startGated>[2],
  ): Promise<GatedCommand> {
    const running = await startGated(this.#owned.reader.fileSystem, command, options);
    try {
      await this.#append({
        type: "process-started",
        callId: this.#callId,
        ...running.identity,
        command: command.join(" "),
      });
      return running;
    } catch (error) {
      running.abandon();
      throw error;
    }
  }

  /** Step 4: fuzzy checkpoints under the command's own permit (U2), one after the other, each only if something changed. */
  checkpointEvery(everyMs: number): { stop(): Promise<void> } {
    const stopping = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    let walking: Promise<void> = Promise.resolve();
    const tick = (): void => {
      walking = this.#intervalCheckpoint(stopping.signal).then(schedule);
    };
    const schedule = (): void => {
      if (everyMs > 0 && !stopping.signal.aborted) timer = setTimeout(tick, everyMs).unref();
    };
    schedule();
    return {
      stop: async () => {
        stopping.abort();
        clearTimeout(timer);
        await walking;
      },
    };
  }

  async #intervalCheckpoint(signal: AbortSignal): Promise<void> {
    try {
      const taken = await this.#owned.take({
        trigger: "interval",
        turnId: this.#turnId,
        fuzzy: true,
        unlessEqual: this.#latest,
        signal,
      });
      if (taken.event === undefined) return;
      await this.#append(taken.event);
      this.#latest = taken.result.ref;
    } catch {
      // `take` journaled why. The command goes on: an interval costs an intermediate state, not the way back.
    }
  }

  /** Steps 5 and 6. */
  async finish(exit: CommandExit, interrupted: unknown): Promise<Omit<FinishedTurn, "durationMs">> {
    const { exitCode, signal } = exit;
    await this.#append({
      type: "process-exited",
      callId: this.#callId,
      ...(signal === undefined ? { exitCode } : { signal }),
    });
    const closing = await this.#close();
    const { record, clock, fileSystem, root } = this.#owned.reader;
    const { order } = await record.draw({}, clock());
    const head = readGitHead(fileSystem, root);
    const event = closing?.event;
    const end = { order, changed: event?.changed ?? 0, ...(head === undefined ? {} : { head }) };
    await this.#append(
      ...(closing === undefined || event === undefined ? [] : [event, this.#window(closing.result.ref, order)]),
      interrupted === undefined
        ? { type: "turn-done", ...end, exitCode, ...(signal === undefined ? {} : { signal }) }
        : { type: "turn-interrupted", ...end, reason: "aborted" },
    );
    await this.#owned.append({ type: "session-idle" });
    return {
      number: this.#number,
      turnId: this.#turnId,
      callId: this.#callId,
      openOrder: this.#openOrder,
      closeOrder: order,
      exit,
      from: this.#baseline.result.tree,
      to: closing?.result.tree,
      checkpoints: this.#checkpoints,
    };
  }

  /** The command did its work; what failed after it must not read as if it had not run. */
  unrecorded({ exitCode }: CommandExit, cause: unknown): Error {
    if (!isLooprigError(cause)) return cause as Error;
    return new LooprigError(
      "exec.unrecorded",
      `The command ran and ended with ${exitCode}, but the end of t${this.#number} could not be recorded (${cause.message}); ` +
        "the next looprig command that writes here settles it",
      { turn: this.#number, exitCode },
      { cause },
    );
  }

  /**
   * The closing capture. Undefined when it failed, which `take` journals: then the turn is unprotected; the command's own
   * result is never lost over it.
   */
  async #close(): Promise<TakenCheckpoint | undefined> {
    const { ref } = this.#baseline.result;
    try {
      return await this.#owned.take({ trigger: "window", turnId: this.#turnId, countedFrom: ref, unlessEqual: ref });
    } catch (error) {
      if (isLooprigError(error)) return undefined;
      throw error;
    }
  }

  #window(to: SnapshotRef, closeOrder: number): NewEvent<"workspace-changed"> {
    return {
      ...{ type: "workspace-changed", kind: "window", callId: this.#callId },
      ...{ from: this.#baseline.result.ref, to, opened: true },
      ...{ openOrder: this.#openOrder, closeOrder },
    };
  }

  async #append(...events: readonly NewEvent[]): Promise<void> {
    const stamped = events.map((event) => ({ ...event, turnId: this.#turnId }));
    for (const event of await this.#owned.append(...stamped)) {
      if (isCheckpoint(event)) this.#checkpoints.push(toCheckpoint(event, this.#number));
    }
  }
}

const isCheckpoint = (event: SessionEvent): event is EventOf<"workspace-checkpointed"> =>
  event.type === "workspace-checkpointed";

/** Asks the command to end, and ends it when it does not within the grace time. */
async function endCommand(running: GatedCommand): Promise<CommandExit> {
  running.signal("SIGTERM");
  const timer = setTimeout(() => running.signal("SIGKILL"), graceMs);
  try {
    return await running.exit;
  } finally {
    clearTimeout(timer);
  }
}
