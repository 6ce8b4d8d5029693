/**
 * The files of the root as the file tools of one loop share them: where a path leads, what was seen of it, and the order of
 * permit, critical section, check and commit (C5, C8, C9). Each tool decides; this file is how it acts.
 */
import {
  Directory,
  LooprigError,
  StaleFileError,
  WorkspaceRootChangedError,
  components,
  displayName,
  isMissing,
  nodeFileSystem,
} from "../core/index.js";
import type { CanonicalRoot, FileSystem, WorkspacePath } from "../core/index.js";
import type { ChangeRecords, KeptOutputs, RecordedPermit, WorkspaceBinding } from "../tool/index.js";
import { createObservations } from "../workspace/index.js";
import type {
  CommitSection,
  PathObservation,
  WorkspaceCoordinator,
  WorkspaceObservations,
  WorkspacePermit,
} from "../workspace/index.js";
import { commitFile } from "./commit-file.js";
import { locate } from "./locate.js";
import { readPresent } from "./present-file.js";
import type { PresentFile } from "./present-file.js";
import { SeenTexts } from "./seen-texts.js";

/** A path within permit and critical section. */
export interface HeldFile {
  readonly path: WorkspacePath;
  readonly observed: PathObservation;
  /** The file as it stands now; undefined for absent. */
  present(): PresentFile | undefined;
  /** False when the file is not `expected` any more; then nothing was written. Throws after an abort or without the permit. */
  commit(bytes: Uint8Array, expected: PresentFile | undefined): Promise<boolean>;
}

export class LoopFiles {
  readonly root: CanonicalRoot;
  readonly fileSystem: FileSystem;
  readonly seen = new SeenTexts();
  readonly observations: WorkspaceObservations;
  readonly outputs: KeptOutputs | undefined;
  readonly #coordinator: WorkspaceCoordinator;
  readonly #commits: CommitSection | undefined;
  readonly #records: ChangeRecords | undefined;
  #identity: { readonly dev: bigint; readonly ino: bigint } | undefined;

  constructor(workspace: WorkspaceBinding, fileSystem: FileSystem = nodeFileSystem) {
    const { root, coordinator, observations, commits, records, outputs } = workspace;
    this.root = root;
    this.fileSystem = fileSystem;
    this.observations = observations ?? createObservations({ root });
    this.outputs = outputs;
    this.#coordinator = coordinator;
    this.#commits = commits;
    this.#records = records;
  }

  locate(given: string): WorkspacePath {
    this.open().close();
    return locate(this.fileSystem, this.root, given);
  }

  /** The root, the same directory each time (R7). The caller closes it. */
  open(): Directory {
    let top: Directory;
    try {
      top = Directory.open(this.fileSystem, this.root);
    } catch (error) {
      throw isMissing(error) ? this.#changed("missing", error) : error;
    }
    this.#identity ??= { dev: top.dev, ino: top.ino };
    if (top.dev === this.#identity.dev && top.ino === this.#identity.ino) return top;
    top.close();
    throw this.#changed("replaced");
  }

  /** Looks at one path as the only one of this loop there. */
  async look<T>(path: WorkspacePath, work: (file: Omit<HeldFile, "commit">) => T): Promise<T> {
    return this.observations.withPath(path === "" ? this.root : path, async (observed) => {
      using top = this.open();
      return work({ path, observed, present: () => readPresent(this.fileSystem, top, path) });
    });
  }

  /** Changes one path: permit first, so that what is checked under it stays. */
  async change<T>(path: WorkspacePath, signal: AbortSignal, work: (file: HeldFile) => Promise<T>): Promise<T> {
    assertUndoable(path);
    using permit = await this.#acquire(path, signal);
    return await this.observations.withPath(path === "" ? this.root : path, async (observed) => {
      using top = this.open();
      const { fileSystem } = this;
      const commits = this.#commits;
      return await work({
        ...{ path, observed },
        present: () => readPresent(fileSystem, top, path),
        commit: (bytes, expected) => commitFile({ fileSystem, top, path, permit, signal, commits }, bytes, expected),
      });
    });
  }

  /** Where changes are recorded, a permit that records them. */
  #acquire(path: WorkspacePath, signal: AbortSignal): Promise<WorkspacePermit | RecordedPermit> {
    const paths = [path === "" ? this.root : path];
    return this.#records === undefined
      ? this.#coordinator.acquire({ operation: "path-mutation", paths }, { signal })
      : this.#records.acquire(paths, { signal });
  }

  #changed(state: "missing" | "replaced", cause?: unknown): WorkspaceRootChangedError {
    const what = state === "missing" ? "it is not there any more" : "another directory stands there now";
    return new WorkspaceRootChangedError(
      "workspace_root.changed",
      `Cannot use files of "${this.root}": ${what}; nothing was written`,
      { root: this.root, state },
      { cause },
    );
  }
}

/**
 * Refuses what captures leave out and restores never write (U12): file tools ask for no approval because what they change can be
 * undone (T5), and a hook or a line of configuration there would be a command that nobody was asked about. In any spelling,
 * since some volumes fold case.
 */
function assertUndoable(path: WorkspacePath): void {
  if (!components(path).some((name) => name.toLowerCase() === ".git")) return;
  throw new LooprigError(
    "file.vcs",
    `Cannot write ${displayName(path)}: it lies in .git, where a change could not be taken back; use a git command`,
    { path },
  );
}

/** Refuses to write over what was not seen as it is (C9). The message holds no content; the tool's answer does. */
export function stale(path: WorkspacePath, seen: "nothing" | "part" | "absent" | "other"): StaleFileError {
  const what = {
    nothing: "it exists and was not read before",
    part: "only a part of it was read",
    absent: "it was absent when last seen and exists now",
    other: "it is not as it was last seen",
  }[seen];
  return new StaleFileError(
    "file.stale",
    `Cannot write over ${displayName(path)}: ${what}. Nothing was written`,
    { path, seen },
    { retryable: true },
  );
}
