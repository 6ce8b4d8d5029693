/**
 * Runs commands on the real thing and on the model beside it, and compares both after every one: the whole tree, who may be
 * named, what a receipt says, and that an untouched file kept its identity and time stamp.
 */
import { expect } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import type { Checkpoint, RestoreAction, RestoreReceipt } from "../../src/workspace/index.js";
import { checkReceipt, checkRestore, checkReversal } from "./check-verbs.js";
import type { Choose, Done, Named } from "./check-verbs.js";
import { Contract } from "./contract.js";
import type { Record } from "./contract.js";
import type { Command, TurnStep, Verb } from "./commands.js";
import { ancestors, difference, edited, isBelow, isDirectory, isIn, lookAt, makeEdit, printed } from "./nodes.js";
import type { Edit, Node, Nodes } from "./nodes.js";
import { Holder, Real } from "./real.js";
import type { RealOptions } from "./real.js";
import { shellScript } from "./shell-script.js";

interface Owner {
  readonly holder: Holder;
  /** The window of the program that took a checkpoint: until its next verb (decision 0006). */
  own: { readonly nodes: Nodes; readonly order: number } | undefined;
}

export class Run implements AsyncDisposable {
  readonly #real: Real;
  readonly #contract: Contract;
  readonly #owners: readonly Owner[];
  readonly #named: Named[] = [];
  readonly #told: Map<string, number>;
  #live: Nodes = new Map();
  #copies = 0;

  private constructor(options: RealOptions, told: Map<string, number>) {
    this.#told = told;
    this.#real = new Real(options);
    this.#contract = new Contract(options.shared);
    const owner = (): Owner => ({ holder: new Holder(this.#real), own: undefined });
    this.#owners = options.shared ? [owner(), owner()] : [owner()];
  }

  /** Counts in `told` what was done and how it ended, so that a test can tell what it has seen. */
  static async start(options: RealOptions, first: readonly Edit[], told: Map<string, number>): Promise<Run> {
    const run = new Run(options, told);
    run.#edit(first);
    for (const { holder } of run.#owners) await holder.open("session");
    await run.#checkpoint(run.#owner(0));
    return run;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { holder } of this.#owners) await holder.close();
    await this.#real[Symbol.asyncDispose]();
  }

  async do(command: Command): Promise<void> {
    const owner = this.#owner(command.who % this.#owners.length);
    const who = owner.holder.workspace.sessionId;
    switch (command.do) {
      case "outside":
        this.#edit(command.edits);
        break;
      case "turn":
        await this.#turn(owner, who, command.steps);
        break;
      case "program":
        await this.#checkpoint(owner);
        this.#edit(command.edits);
        break;
      case "shell":
        await this.#shell(owner, who, command.edits);
        break;
      case "checkpoint":
        await this.#checkpoint(owner);
        break;
      case "verb":
        await this.#verb(owner, who, command.verb);
        break;
      case "copy":
        await this.#copy(owner, command.ref);
        break;
      case "look":
        await this.#look(owner, command.ref);
        break;
      case "restart":
        await (command.how === "close" ? owner.holder.close() : owner.holder.lose());
        owner.own = undefined;
        await owner.holder.open(command.as);
        break;
    }
    if (command.do !== "verb") this.#tell(command.do);
    this.#compare(lookAt(this.#real.root).nodes, `after ${command.do}`);
  }

  #tell(what: string): void {
    this.#told.set(what, (this.#told.get(what) ?? 0) + 1);
  }

  #owner(who: number): Owner {
    const owner = this.#owners[who];
    if (owner === undefined) throw new Error("no such owner");
    return owner;
  }

  #compare(disk: Nodes, when: string): void {
    expect(printed(disk), when).toEqual(printed(this.#live));
  }

  /** By plain means, at once; undefined edits are none. Returns what was changed. */
  #edit(edits: readonly Edit[]): void {
    for (const edit of edits) {
      const next = edited(this.#live, edit);
      if (next === undefined) continue;
      makeEdit(this.#real.root, this.#live, edit);
      this.#live = next;
    }
  }

  // ── what changes files ────────────────────────────────────────────────────────────────────────────────────────────

  async #checkpoint(owner: Owner): Promise<void> {
    const checkpoint = await owner.holder.workspace.checkpoint();
    this.#name(checkpoint);
    owner.own = { nodes: this.#live, order: this.#contract.tick() };
  }

  #name({ number }: Checkpoint): void {
    this.#named.push({ name: `c${number}`, nodes: this.#live, since: this.#contract.tick() });
  }

  /** Made without a walk (U8): what was written is in it as it is; of all the rest it may be behind. */
  async #nameDerived(owner: Owner, { number }: Checkpoint, touched: readonly string[]): Promise<void> {
    const nodes = await this.#copyOf(owner, `c${number}`);
    for (const path of touched) expect([path, nodes.get(path)]).toEqual([path, this.#live.get(path)]);
    this.#named.push({ name: `c${number}`, nodes, since: this.#contract.tick() });
  }

  /**
   * What a turn's two trees are called. Other checkpoints may have the same tree, so that no record is surely newer. Where
   * others wrote in the turn, its end is the tree that was captured last, and no rule says which that is.
   */
  #nameTurn(turn: number, before: Nodes, alone = true): void {
    const since = Infinity;
    this.#named.push({ name: `t${turn}^`, nodes: before, since });
    if (alone) this.#named.push({ name: `t${turn}`, nodes: this.#live, since });
  }

  #closeOwn(owner: Owner): void {
    const { own } = owner;
    const who = owner.holder.workspace.sessionId;
    owner.own = undefined;
    if (own === undefined || difference(own.nodes, this.#live).length === 0) return;
    const turn = this.#contract.nextTurn();
    const close = this.#contract.tick();
    const records = this.#window(who, turn, own.nodes, own.order, close);
    this.#contract.endTurn(turn, who, records);
    this.#nameTurn(turn, own.nodes);
  }

  #window(session: string, turn: number, from: Nodes, open: number, close: number): readonly Record[] {
    return difference(from, this.#live).map((change) => ({
      ...{ ...change, session, turn, open, close },
      strength: "window" as const,
    }));
  }

  async #shell(owner: Owner, who: string, edits: readonly Edit[]): Promise<void> {
    owner.own = undefined;
    const before = this.#live;
    const [turn, open] = [this.#contract.nextTurn(), this.#contract.tick()];
    const script: string[] = [];
    for (const edit of edits) {
      const lines = shellScript(edit);
      const next = lines === undefined ? undefined : edited(this.#live, edit);
      if (lines === undefined || next === undefined) continue;
      script.push(...lines);
      this.#live = next;
    }
    const result = await owner.holder.workspace.exec(["sh", "-ec", script.join("\n")], { stdio: "ignore" });
    expect([result.exitCode, result.turn]).toEqual([0, turn]);
    const records = this.#window(who, turn, before, open, this.#contract.tick());
    expect(result.changes.map(({ path }) => path).sort()).toEqual(records.map(({ path }) => path).sort());
    this.#contract.endTurn(turn, who, records);
    this.#nameTurn(turn, before);
  }

  async #turn(owner: Owner, who: string, acts: readonly TurnStep[]): Promise<void> {
    if (!owner.holder.hasLoops) return;
    owner.own = undefined;
    const before = this.#live;
    const turn = this.#contract.nextTurn();
    const [steps, deeds, records]: [ScriptStep[], (() => void)[], Record[]] = [[], [], []];
    for (const act of acts) {
      if (act.by === "tool") {
        if (!this.#canWrite(act.path)) continue;
        const input = { file_path: act.path, content: act.bytes };
        if (this.#live.has(act.path)) steps.push({ calls: [{ tool: "Read", input: { file_path: act.path } }] });
        steps.push({ calls: [{ tool: "Write", input }] });
        records.push(...this.#toolWrite(act, who, turn));
        continue;
      }
      const from = this.#live;
      const open = this.#contract.tick();
      const made: Edit[] = [];
      const states: Nodes[] = [];
      for (const edit of act.edits) {
        const next = edited(this.#live, edit);
        if (next === undefined) continue;
        made.push(edit);
        states.push(this.#live);
        this.#live = next;
      }
      deeds.push(() => {
        made.forEach((edit, at) => {
          makeEdit(this.#real.root, states[at] ?? new Map<string, Node>(), edit);
        });
      });
      steps.push({ calls: [{ tool: act.by === "window" ? "Change" : "Outside", input: {} }] });
      if (act.by === "window") records.push(...this.#window(who, turn, from, open, this.#contract.tick()));
    }
    await owner.holder.turn(steps, deeds);
    this.#contract.endTurn(turn, who, records);
    this.#nameTurn(turn, before, !acts.some(({ by }) => by === "outside"));
  }

  /** Files and new files below directories; what a file tool does about links has tests of its own. */
  #canWrite(path: string): boolean {
    const now = this.#live.get(path);
    const readable = now === undefined || (now.kind === "file" && now.bytes !== "" && !now.bytes.includes("\0"));
    return readable && ancestors(path).every((above) => !this.#live.has(above) || isDirectory(this.#live.get(above)));
  }

  /** A recorded write, with the directories it makes. */
  #toolWrite({ path, bytes }: Extract<TurnStep, { by: "tool" }>, session: string, turn: number): readonly Record[] {
    const from = this.#live;
    const now = from.get(path);
    const next = new Map(from);
    for (const above of ancestors(path)) if (!next.has(above)) next.set(above, { kind: "directory", mode: 0o755 });
    next.set(path, { kind: "file", bytes, mode: now?.kind === "file" ? now.mode : 0o644 });
    this.#live = next;
    const order = this.#contract.tick();
    return difference(from, next).map((change) => ({
      ...{ ...change, session, turn, open: order, close: order },
      strength: "recorded" as const,
    }));
  }

  // ── undo, redo, restore ───────────────────────────────────────────────────────────────────────────────────────────

  async #verb(owner: Owner, who: string, verb: Verb): Promise<void> {
    if (verb.kind !== "redo") this.#closeOwn(owner);
    owner.own = undefined;
    const { action, target, entry } = this.#chosen(verb);
    if (action === undefined) return;
    const done = await this.#carryOut(owner, action, verb);
    if (done === undefined) {
      this.#tell(`${verb.kind} moved`);
      return;
    }
    const { receipt, before, after } = done;
    this.#tell(`${verb.kind} ${receipt instanceof Error ? "asks" : receipt.result}`);
    if (target !== undefined && verb.kind === "restore") checkRestore(this.#contract, verb, target, done);
    else checkReversal(this.#contract, verb, entry, done);
    this.#live = after.nodes;
    if (receipt instanceof Error) {
      expect(printed(after.nodes), "a refusal changes nothing").toEqual(printed(before.nodes));
      return;
    }
    await checkReceipt(owner.holder.workspace, receipt, before, after);
    const { checkpoint } = receipt;
    if (checkpoint === undefined) return;
    this.#note(verb, who, receipt, before.nodes);
    if (checkpoint.derived !== true && done.unedited === undefined) this.#name(checkpoint);
    else await this.#nameDerived(owner, checkpoint, [...receipt.written, ...receipt.deleted]);
  }

  /** The action, with what its numbers choose. */
  #chosen(verb: Verb): {
    readonly action?: RestoreAction;
    readonly target?: Named;
    readonly entry?: Choose;
  } {
    const contract = this.#contract;
    const { paths, includeWindow } = verb;
    switch (verb.kind) {
      case "undo": {
        const turns = contract.entries.filter(({ turn }) => turn !== undefined);
        const turn = verb.turn === undefined ? undefined : turns[verb.turn % turns.length]?.name;
        const { kind, onConflict } = verb;
        return {
          action: { kind, onConflict, paths, includeWindow, turn },
          entry: (live) => contract.undoable(live, { paths }, turn),
        };
      }
      case "redo": {
        const { kind, onConflict } = verb;
        return {
          action: { kind, onConflict, includeWindow },
          entry: (live) => {
            const entry = contract.redoable();
            if (entry === undefined) return undefined;
            return { entry, plan: contract.reversal(entry, live, "redo", { paths: undefined }) };
          },
        };
      }
      case "restore": {
        const target = this.#named[verb.ref % this.#named.length];
        if (target === undefined) return {};
        const { kind, exact } = verb;
        return { action: { kind, exact, paths, includeWindow, ref: target.name }, target };
      }
    }
  }

  async #carryOut(owner: Owner, action: RestoreAction, { planned }: Verb): Promise<Done | undefined> {
    const { workspace } = owner.holder;
    if (planned === undefined) {
      const before = lookAt(this.#real.root);
      const receipt = await refusal(() => doVerb(owner, action));
      return { receipt, before, after: lookAt(this.#real.root) };
    }
    const plan = await workspace.plan(action);
    this.#compare(lookAt(this.#real.root).nodes, "planning changes nothing (U5)");
    const unedited = this.#live;
    if (planned.between !== undefined) this.#edit([planned.between]);
    const before = lookAt(this.#real.root);
    const receipt = await refusal(() => workspace.apply(plan));
    const after = lookAt(this.#real.root);
    const moved = difference(unedited, this.#live).map(({ path }) => path);
    if (isLooprigError(receipt, "restore.tree_moved", "restore.failed")) {
      expect(printed(after.nodes), "a moved tree is not touched").toEqual(printed(before.nodes));
      const planPaths: readonly string[] = [...plan.writes, ...plan.deletes];
      const touched = moved.some((path) => planPaths.some((other) => isIn(path, other) || isBelow(other, path)));
      expect(touched, `moved: ${moved.join()} for ${planPaths.join()}`).toBe(true);
      return undefined;
    }
    // What the plan said without having seen the edit still holds where the edit did not touch it.
    if (moved.length > 0) {
      const written = receipt instanceof Error ? [] : [...receipt.written, ...receipt.deleted];
      for (const path of moved)
        if (written.includes(path as never)) throw new Error(`${path} was written over although it moved`);
      return { receipt, before, after, unedited };
    }
    return { receipt, before, after };
  }

  #note(verb: Verb, who: string, receipt: RestoreReceipt, before: Nodes): void {
    if (verb.kind === "restore") {
      this.#contract.restored(`c${receipt.checkpoint?.number ?? 0}`, who, before, this.#live);
      return;
    }
    const entry = this.#contract.entries.find(({ name }) => name === receipt.entry);
    if (entry === undefined) throw new Error(`no entry ${receipt.entry ?? "at all"}`);
    if (verb.kind === "redo") this.#contract.redone(entry);
    else this.#contract.undone(entry, [...receipt.written, ...receipt.deleted], receipt.result === "partly");
  }

  // ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #copy(owner: Owner, ref: number): Promise<void> {
    const named = this.#named[ref % this.#named.length];
    if (named === undefined) return;
    expect(printed(await this.#copyOf(owner, named.name)), `copy of ${named.name}`).toEqual(printed(named.nodes));
  }

  async #copyOf(owner: Owner, name: string): Promise<Nodes> {
    const place = this.#real.beside(`copy-${++this.#copies}`);
    await owner.holder.workspace.materialize(name, place);
    return lookAt(place).nodes;
  }

  async #look(owner: Owner, ref: number): Promise<void> {
    const named = this.#named[ref % this.#named.length];
    if (named === undefined) return;
    const changes = await owner.holder.workspace.changes({ since: named.name });
    const wanted = difference(named.nodes, this.#live);
    expect(changes.map(({ path }) => String(path)).sort()).toEqual(wanted.map(({ path }) => path).sort());
    for (const { path, kind, by } of changes) {
      const [before, after] = [named.nodes.get(path), this.#live.get(path)];
      expect([path, kind]).toEqual([path, after === undefined ? "deleted" : before === undefined ? "added" : "edited"]);
      const records = this.#contract.explanations(path, after);
      if (records.length === 0) expect([path, by.kind]).toEqual([path, "foreign"]);
      if (records.some(({ close }) => close > named.since)) expect([path, by.kind]).not.toEqual([path, "foreign"]);
    }
  }
}

function doVerb({ holder: { workspace } }: Owner, action: RestoreAction): Promise<RestoreReceipt> {
  if (action.kind === "undo") return workspace.undo(action);
  if (action.kind === "redo") return workspace.redo(action);
  return workspace.restore(action.ref, action);
}

/** A typed error is an answer like another; whatever else is thrown fails the run. */
async function refusal(work: () => Promise<RestoreReceipt>): Promise<RestoreReceipt | Error> {
  try {
    return await work();
  } catch (error) {
    if (!isLooprigError(error, "undo.needs_consent", "restore.tree_moved", "restore.failed")) throw error;
    return error;
  }
}
