/** The read-only view of a root: it takes no lease and writes nothing but the stat index. */
import { LooprigError, SnapshotError, displayName, isWithin, parseWorkspacePath, signalOf } from "../core/index.js";
import type { Abortable, CanonicalRoot, LeaseHolder, SessionId, SnapshotRef, WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { Tree, TreeChange, TreeEntry } from "../workspace-store/index.js";
import { Attribution } from "./attribution.js";
import { invalid } from "./capture-rules.js";
import type {
  Change,
  Checkpoint,
  FileDiff,
  RefLike,
  ResolvedRef,
  RestoreAction,
  RestorePlan,
  RootHistory,
  WorkspaceView,
  TurnSummary,
} from "./contracts.js";
import { describeChange, fileDiff } from "./file-diff.js";
import type { ReadSide } from "./file-diff.js";
import type { FoldedHistory } from "./history.js";
import { readLiveFile } from "./live-file.js";
import { makePlan } from "./planning.js";
import { PresentRoot } from "./present-root.js";
import { parsePurpose } from "./restore-purpose.js";
import { resolveRef, resolveTurn } from "./references.js";
import { holderOf } from "./root-holder.js";
import type { RootReader } from "./root-reader.js";
import { netChanges, unstaged } from "./turn-record.js";

export class RootView implements WorkspaceView {
  protected readonly reader: RootReader;
  readonly #onClose: () => Promise<void>;

  constructor(reader: RootReader, onClose: () => Promise<void>) {
    this.reader = reader;
    this.#onClose = onClose;
  }

  get root(): CanonicalRoot {
    return this.reader.root;
  }

  history(options: Abortable = {}): Promise<RootHistory> {
    return this.reader.history(options);
  }

  async *checkpoints(options: Abortable & { limit?: number | undefined } = {}): AsyncIterable<Checkpoint> {
    const { checkpoints } = await this.reader.history(signalOf(options));
    yield* options.limit === undefined
      ? checkpoints
      : checkpoints.slice(Math.max(0, checkpoints.length - options.limit));
  }

  holder(options: Abortable = {}): Promise<(LeaseHolder & { readonly root: string }) | undefined> {
    return holderOf(this.reader, options);
  }

  async changes({ since: given, signal }: Abortable & { since?: RefLike | undefined } = {}): Promise<
    readonly Change[]
  > {
    const history = await this.reader.history({ signal });
    if (given === undefined && history.checkpoints.length === 0) return [];
    const since = resolveRef(history, given ?? "last");
    const [from, to] = [await this.reader.tree(since.ref, { signal }), await this.reader.tree("now", { signal })];
    // Whatever stands in the tree for its moment was on record before it was made: asked again after the look.
    const changes = unstaged(await this.reader.history({ signal }), this.reader.store.diff(from, to, { signal }));
    return this.attribute(history, since.checkpoint?.order ?? 0, changes, { signal });
  }

  async *diff({
    signal,
    ...asked
  }: Abortable & {
    turn?: string | undefined;
    reverse?: boolean | undefined;
    from?: RefLike | undefined;
    to?: RefLike | undefined;
    paths?: readonly string[] | undefined;
  } = {}): AsyncIterable<FileDiff> {
    const history = await this.reader.history({ signal });
    const turn = turnAsked(history, asked);
    const span = turn === undefined ? given(history, asked) : spanOf(turn);
    if (span === undefined) return;
    const [from, to] = [await this.reader.tree(span.from, { signal }), await this.reader.tree(span.to, { signal })];
    const paths = asked.paths?.map((path) => parseWorkspacePath(path));
    const sides: [ReadSide, ReadSide] = [this.#side(span.from), this.#side(span.to)];
    if (turn !== undefined && turn !== "none") {
      const present = new PresentRoot(this.reader, { signal });
      const own = await netChanges(this.reader.store, history, turn, present, { signal });
      for (const { path, before, after } of own) {
        if (paths?.some((chosen) => isWithin(path, chosen)) === false) continue;
        // What somebody wrote over since is shown as it ended up: the turn's own bytes may be in no tree.
        const shown = await to.lookup(path);
        const change = { path, before, after: isSameEntry(shown, after) ? after : shown };
        yield asked.reverse === true
          ? await fileDiff({ path, before: change.after, after: before }, sides[1], sides[0], { signal })
          : await fileDiff(change, ...sides, { signal });
      }
      return;
    }
    for await (const change of unstaged(history, this.reader.store.diff(from, to, { signal, paths }))) {
      yield await fileDiff(change, ...sides, { signal });
    }
  }

  async resolve(ref: RefLike, options: Abortable = {}): Promise<ResolvedRef> {
    return resolveRef(await this.reader.history(options), ref);
  }

  async tree(ref: RefLike, options: Abortable = {}): Promise<Tree> {
    return this.reader.tree((await this.resolve(ref, options)).ref, options);
  }

  async *readFile(ref: RefLike, path: string, options: Abortable = {}): AsyncIterable<Uint8Array> {
    const resolved = await this.resolve(ref, options);
    const tree = await this.reader.tree(resolved.ref, options);
    const entry = await tree.lookup(parseWorkspacePath(path));
    yield* this.#bytes(tree.ref, path as WorkspacePath, entry, this.#side(resolved.ref));
  }

  async materialize(
    ref: RefLike,
    dest: string,
    options: Abortable & { readonly paths?: readonly string[] | undefined } = {},
  ): Promise<{ readonly entries: number; readonly bytes: number }> {
    const { signal } = options;
    const { ref: resolved } = await this.resolve(ref, { signal });
    if (resolved === "now")
      throw new LooprigError("ref.unknown", 'Cannot write "now" elsewhere: take a checkpoint first', { given: ref });
    const tree = await this.reader.store.open(resolved, { signal });
    const paths = options.paths?.map((path) => parseWorkspacePath(path));
    return this.reader.store.materialize(tree, dest, { signal, paths });
  }

  async plan(action: RestoreAction, options: Abortable = {}): Promise<RestorePlan> {
    const history = await this.reader.history(options);
    const present = new PresentRoot(this.reader, options);
    return makePlan(this.reader, action, { history, present, asker: this.asker() }, options);
  }

  async unsettled(options: Abortable = {}): Promise<{ readonly planId: string; readonly action: string } | undefined> {
    const plan = await this.reader.plans.read(options);
    return plan === undefined
      ? undefined
      : { planId: plan.record.planId, action: parsePurpose(plan.record.purpose).action };
  }

  async storedBytes(options: Abortable = {}): Promise<number> {
    let bytes = 0;
    for (const prefix of ["packs/", "index/"]) {
      for await (const { size } of this.reader.storage.blobs.list(prefix, options)) bytes += size;
    }
    return bytes;
  }

  close(): Promise<void> {
    return this.#onClose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The session that asks, where there is one: its own changes are told apart from those of others. */
  protected asker(): SessionId | undefined {
    return undefined;
  }

  /** Names who made each change. `since`: the order from which windows count. */
  protected async attribute(
    history: FoldedHistory,
    since: number,
    changes: AsyncIterable<TreeChange>,
    options: Abortable,
  ): Promise<readonly Change[]> {
    const attribution = await Attribution.load(this.reader.store, history, since, options);
    const named: Change[] = [];
    for await (const change of changes) {
      named.push(describeChange(change, attribution.by(change.path, change.after, this.asker())));
    }
    return named;
  }

  #side(ref: SnapshotRef | "now"): ReadSide {
    return (entry, change) =>
      ref === "now"
        ? readLiveFile(this.reader.fileSystem, this.reader.root, change.path)
        : this.reader.store.read(entry, { path: change.path });
  }

  async *#bytes(
    ref: SnapshotRef,
    path: WorkspacePath,
    entry: TreeEntry | undefined,
    read: ReadSide,
  ): AsyncIterable<Uint8Array> {
    if (entry?.kind === "file") yield* read(entry, { path, before: undefined, after: entry });
    else if (entry?.kind === "symlink") yield Buffer.from(entry.target);
    else if (entry?.kind === "omitted") {
      throw new SnapshotError(
        "snapshot.path_omitted",
        `Cannot show ${displayName(path)}: it was left out of the snapshot as "${entry.class}"`,
        { ref, path, class: entry.class },
      );
    } else {
      const found = entry === undefined ? "there is nothing of that name" : "it is a directory";
      throw new SnapshotError("snapshot.path_missing", `Cannot show ${displayName(path)}: ${found} in that snapshot`, {
        ref,
        path,
      });
    }
  }
}

interface Span {
  readonly from: SnapshotRef | "now";
  readonly to: SnapshotRef | "now";
}

/** The turn whose own changes are asked for; undefined when two trees are. */
function turnAsked(
  history: RootHistory,
  { turn, from, to }: { readonly turn?: string | undefined; readonly from?: unknown; readonly to?: unknown },
): TurnSummary | "none" | undefined {
  const trees = from !== undefined || to !== undefined;
  if (turn === undefined) return trees ? undefined : (history.turns.findLast(hasChanged) ?? "none");
  if (trees) throw invalid("turn", turn, "a turn, or `from` and `to`");
  return resolveTurn(history, turn);
}

/** Every turn is between two trees; of a loop's turn only a part of what differs is its own. */
const hasChanged = ({ kind, changed, from, to }: TurnSummary): boolean =>
  from !== undefined && to !== undefined && (kind === "command" ? from !== to : changed > 0);

/** A turn that was cut short and not settled ends where the tree is now. */
function spanOf(turn: TurnSummary | "none"): Span | undefined {
  if (turn === "none" || turn.from === undefined) return undefined;
  const to = turn.state === "unsettled" ? "now" : turn.to;
  return to === undefined ? undefined : { from: turn.from, to };
}

function given(
  history: RootHistory,
  options: { readonly from?: RefLike | undefined; readonly to?: RefLike | undefined },
): Span {
  return {
    from: resolveRef(history, options.from ?? "last").ref,
    to: resolveRef(history, options.to ?? "now").ref,
  };
}
