/**
 * Snapshots of directory trees: capture, read, compare, materialize, verify.
 *
 * This feature owns trees, packs, indexes, stat indexes and pins. It knows nothing of sessions or attribution; `workspace`
 * decides when to capture and what a difference means.
 */
import type { Abortable, Brand, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { LeaseClaim } from "../storage/index.js";

/** `sha256:<hex>` ids are plain 64-digit lowercase hex in memory. A file's content (G6). */
export type ContentId = Brand<string, "ContentId">;
/** A directory's canonical encoding. */
export type TreeId = Brand<string, "TreeId">;

/** Why a path is in the tree as a name only (U14). */
export type OmissionClass =
  "special" | "over-size" | "excluded" | "vcs" | "private" | "mount" | "unreadable" | "unstable";

/** What a tree says of one name. `mode` is the permission bits alone (0 to 0o777): set-id and sticky bits are not captured. */
export type TreeEntry =
  | { readonly kind: "file"; readonly mode: number; readonly size: number; readonly id: ContentId }
  | { readonly kind: "directory"; readonly mode: number; readonly id: TreeId }
  | { readonly kind: "symlink"; readonly target: string }
  | { readonly kind: "omitted"; readonly class: OmissionClass };

/** A captured or scanned tree. Reading a stored one verifies every node against its digest. */
export interface Tree {
  readonly ref: SnapshotRef;
  /** The id of the root directory's encoding. Equal ids are equal trees. */
  readonly id: TreeId;
  /**
   * What stands at `path`; undefined when nothing does, also where a parent is no directory. The root is a directory; its
   * own mode is not captured and reads 0o755.
   */
  lookup(path: WorkspacePath): Promise<TreeEntry | undefined>;
  /** The entries of the directory at `path` in byte order; empty when it is no directory. */
  list(path: WorkspacePath): Promise<readonly (readonly [name: string, entry: TreeEntry])[]>;
  /** The same by the id of a directory of this tree, without the way to it. `path` is only for messages. */
  entries(
    directory: TreeId,
    options?: Abortable & { readonly path?: WorkspacePath | undefined },
  ): Promise<readonly (readonly [name: string, entry: TreeEntry])[]>;
}

/** One path that differs between two trees; undefined where it is absent. */
export interface TreeChange {
  readonly path: WorkspacePath;
  readonly before: TreeEntry | undefined;
  readonly after: TreeEntry | undefined;
}

/** What stays out of a capture (U11–U13). The decision for a path depends on this value and the path alone. */
export interface CaptureRules {
  /** gitignore lines, relative to the root. Default none. */
  readonly exclude?: readonly string[] | undefined;
  /** Whether `.git` of any kind is captured. Default "omit". */
  readonly vcs?: "include" | "omit" | undefined;
  /** Whether the `private` patterns are captured. Default true for local storage, false for remote. */
  readonly includePrivate?: boolean | undefined;
  /** gitignore lines that name private files. Default `.env`, `.env.*`, `*.pem`, `id_*`. */
  readonly private?: readonly string[] | undefined;
  /** Files above it are `over-size`. Default unlimited. */
  readonly maxFileBytes?: number | undefined;
}

export interface ScanOptions extends Abortable {
  /** Absolute path of the directory. Opened once; everything is reached below that handle. */
  readonly root: string;
  readonly rules?: CaptureRules | undefined;
  /** Identities of directories that are never captured: our own stores (B2). */
  readonly ownDirectories?: readonly { readonly dev: bigint; readonly ino: bigint }[] | undefined;
  /**
   * Names that are ours for the moment: staged files and backups of an unsettled plan (U9). Exactly these are left out.
   */
  readonly ownPaths?: ReadonlySet<WorkspacePath> | undefined;
  /** Called at most every 100 ms. */
  readonly onProgress?: ((progress: CaptureProgress) => void) | undefined;
}

export interface CaptureOptions extends ScanOptions {
  /** Refuses (`capture.incomplete`) instead of recording unreadable, unstable or over-size paths. Default false. */
  readonly strict?: boolean | undefined;
  /** Captures trees above 4 GiB or 500 000 files. Default false: `capture.too_large`, before the first byte is read. */
  readonly allowLarge?: boolean | undefined;
  /** Pins the ref under this owner and id before it is returned (G2). Without it the caller pins before it names the ref. */
  readonly pin?: { readonly owner: string; readonly id: string } | undefined;
  /** May use the last of the disk, which other captures leave alone (U4). Default false: `storage.reserve`. */
  readonly useReserve?: boolean | undefined;
}

/** How far a capture has come, in files looked at and in bytes. */
export interface CaptureProgress {
  readonly filesSeen: number;
  readonly bytesRead: number;
  readonly bytesStored: number;
  /** What the tree holds, known once the walk is complete and before the first byte is read (U11). */
  readonly estimate?: { readonly files: number; readonly bytes: number } | undefined;
}

/** What stands at single paths now, found as a capture would find it. Each question looks anew; nothing is stored. */
export interface PresentPaths {
  /** Undefined for nothing, also where a parent is no directory, is left out or is reached by a link. A directory's `id` says nothing. */
  lookup(path: WorkspacePath): Promise<TreeEntry | undefined>;
  /** The names in a directory, unordered; none when it is no directory. */
  names(path: WorkspacePath): Promise<readonly string[]>;
}

/** How single paths are looked at. */
export interface LookOptions extends ScanOptions {
  /** The volume takes several spellings for one name, so a name is there only if its directory lists it. Default false. */
  readonly foldsNames?: boolean | undefined;
}

/** How a tree is put together from one that is known and a look at some paths. */
export interface DeriveOptions extends LookOptions {
  /** What everything else is taken from: stored, and pinned until the new tree is. */
  readonly base: Tree;
  /** What is looked at, with the directories above. What lies below one is listed too, or is as it is in `base`. */
  readonly paths: readonly WorkspacePath[];
  /** May use the last of the disk (U4). Default false: `storage.reserve`. */
  readonly useReserve?: boolean | undefined;
}

/** A tree that was put together and stored. The caller pins it before it names the ref. */
export interface DerivedTree {
  readonly ref: SnapshotRef;
  readonly tree: Tree;
  readonly bytesRead: number;
  readonly bytesStored: number;
}

/** A tree as it was found. */
export interface ScanResult {
  readonly ref: SnapshotRef;
  readonly tree: Tree;
  /** "partial" when something is `unreadable` or `unstable`. */
  readonly completeness: "complete" | "partial";
  readonly omitted: readonly { readonly path: WorkspacePath; readonly class: OmissionClass }[];
  /** Regular files in the tree. */
  readonly files: number;
  /** Bytes of file content read by this call; 0 when nothing changed. */
  readonly bytesRead: number;
}

/** A tree as it was found and stored. */
export interface CaptureResult extends ScanResult {
  /** Bytes this call added to packs. */
  readonly bytesStored: number;
}

export interface MaterializeOptions extends Abortable {
  /** Only these paths and what lies below them. Default: all. */
  readonly paths?: readonly WorkspacePath[] | undefined;
  /** Default 2^20. */
  readonly maxEntries?: number | undefined;
  /** Bytes actually written. Default 8 GiB. */
  readonly maxBytes?: number | undefined;
  /**
   * What becomes of a `.git` that is a file or a link, which speaks of a repository elsewhere (U12). Default "omit": it is
   * not written. `.git` directories are written as they were captured.
   */
  readonly gitLinks?: "omit" | "write" | undefined;
  /**
   * Whether every file and directory is synced on return, as it must be before anything is recorded that relies on the tree.
   * Default false, as `cp` and `git checkout` leave it: the file system writes it back when it likes.
   */
  readonly durable?: boolean | undefined;
}

/** What a verification read, and what of it does not match its digest or is not there. */
export interface VerifyReport {
  readonly objects: number;
  readonly bytes: number;
  /** One of each object and each path it stands at. */
  readonly damaged: readonly VerifyDamage[];
}

/** An object that cannot be read, at one path. Damage of a directory takes everything below it. */
export interface VerifyDamage {
  readonly object: string;
  /** Absent: the snapshot itself. */
  readonly path?: WorkspacePath;
  readonly problem: "missing" | "damaged";
  /** The snapshots in which it stands there, in the order in which they were given. */
  readonly refs: readonly SnapshotRef[];
}

/** How far a verification has come. */
export interface VerifyProgress {
  readonly objects: number;
  readonly bytes: number;
  /** What the contents come to, once all directories are read: each counted once. */
  readonly estimate?: { readonly objects: number; readonly bytes: number };
}

/** Bytes to keep under a path. `mode` is the permission bits alone. */
export interface KeptFile {
  readonly path: WorkspacePath;
  readonly bytes: Uint8Array;
  readonly mode: number;
}

/** What `keep` may be told. */
export interface KeepOptions extends Abortable {
  /** Pins the ref under this owner and id before it is returned (G2). Without it the caller pins before it names the ref. */
  readonly pin?: { readonly owner: string; readonly id: string } | undefined;
}

/** How a collection is to go about it. */
export interface CollectOptions extends Abortable {
  /** Who collects, for the holder record of the lease. A dry run takes no lease. */
  readonly claim: LeaseClaim;
  /** Says what a collection at this moment would do, and changes nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /**
   * How long an object must have been unreachable before it goes. Default 24 h. With 0 one call does everything, and what
   * a capture that has not pinned yet counted on is stored by it again.
   */
  readonly graceMs?: number | undefined;
  /**
   * Packs of which less than this part is in use are written anew. 0 to 1; 0 removes only packs without any use, 1 leaves no
   * garbage. Default: the least from 0.6 on at which garbage of at most 5 % of what is in use stays.
   */
  readonly fill?: number | undefined;
  /** What may be on the disk beside the store at any moment, in bytes. Default and most 20 MiB: one pack and its index. */
  readonly maxExtraBytes?: number | undefined;
  /** Called at most every 100 ms. */
  readonly onProgress?: ((progress: CollectProgress) => void) | undefined;
}

/** How far a collection has come: objects that were reached from pins, then bytes that were given back. */
export interface CollectProgress {
  readonly stage: "mark" | "sweep";
  readonly objects: number;
  readonly freedBytes: number;
}

/** What a collection did, or (`dryRun`) would do. Bytes are bytes in the store. */
export interface CollectReport {
  readonly dryRun: boolean;
  /** Reached from pins; everything else is garbage, whether it goes now, later or with its pack. */
  readonly live: { readonly objects: number; readonly bytes: number };
  readonly garbage: { readonly objects: number; readonly bytes: number };
  /** `bytes` is what the store is smaller by in the end; `packs` are those that went, emptied or written anew. */
  readonly freed: { readonly objects: number; readonly bytes: number; readonly packs: number };
  /** Condemned, and freed by the first collection after `until`. */
  readonly waiting: { readonly objects: number; readonly bytes: number; readonly until: Date | undefined };
  /** Packs written anew because too little of them was in use or they were too many, and the bytes written. */
  readonly repacked: { readonly packs: number; readonly bytes: number };
  /** The most that stood beside the old bytes at any moment. */
  readonly extraBytes: number;
  /**
   * Directories that pins reach and the store does not have, with a path and the pin; in a dry run also damaged ones, for which
   * a collection would be refused; and damaged contents that were met, whose packs were left alone. `verify` looks for all.
   */
  readonly damaged: readonly {
    readonly object: string;
    readonly path?: WorkspacePath;
    readonly problem: "missing" | "damaged";
    readonly owner?: string;
    readonly id?: string;
  }[];
  /** Why less was done than could be: packs were left alone because there was no room to write them anew. */
  readonly stopped: "full" | undefined;
}

/** What the store holds and for whom. Bytes are bytes in the store; of objects that share a block each has its part. */
export interface StoreStats {
  readonly bytes: { readonly total: number; readonly live: number; readonly garbage: number };
  readonly objects: { readonly live: number; readonly garbage: number };
  readonly packs: number;
  readonly pins: number;
  /** By owner, in order of their names. The owner of what a session pinned is the session's id. */
  readonly owners: readonly OwnerStats[];
}

/** What one owner of pins keeps. */
export interface OwnerStats {
  readonly owner: string;
  readonly pins: number;
  readonly refs: number;
  /** Bytes of everything its refs reach. */
  readonly bytes: number;
  /** Of these, what nobody else keeps: about what unpinning this owner would let a collection free. */
  readonly ownBytes: number;
}

/** Captured trees in a storage. It holds nothing open and needs no closing. Each call takes a `signal`. */
export interface WorkspaceStore {
  /**
   * Captures the tree: walk, read what changed, store it durably, return its ref. Order: packs → index → pin → return.
   * Reads only; nothing below the root is created, changed or executed. A warm capture reads no content of files whose
   * stat is safely unchanged. An abort rejects with `capture.canceled` within a second and leaves only content that the
   * next capture reuses. Errors: `capture.*`, `storage.*`.
   */
  capture(options: CaptureOptions): Promise<CaptureResult>;
  /**
   * Stores these bytes without looking at any tree, as a snapshot that holds exactly these paths; durable on return, and
   * pinned by `pin` or then by the caller. Paths are different from each other and none lies below another. May use the last
   * of the disk (U4). Errors: `storage.*`.
   */
  keep(files: readonly KeptFile[], options?: KeepOptions): Promise<SnapshotRef>;
  /**
   * Stores the tree that `base` is with these paths as they are now, contents included, without a walk; durable on return. It
   * is as whole as `base`. Cost follows the paths and the width of the directories they are in. Errors: `capture.*`, `storage.*`.
   */
  derive(options: DeriveOptions): Promise<DerivedTree>;
  /**
   * Asks `work` with what stands at single paths; the root is held open until it has ended. Errors: `capture.root_unreadable`,
   * `storage.failed` when the process has no descriptors left.
   */
  look<T>(options: LookOptions, work: (present: PresentPaths) => Promise<T>): Promise<T>;
  /** The tree as it is now, hashed but not stored: what read-only commands compare with. Writes at most the stat index. */
  scan(options: ScanOptions): Promise<ScanResult>;
  /** Opens a stored tree. `snapshot.unknown` when the store does not hold the ref; directories are read as they are asked for. */
  open(ref: SnapshotRef, options?: Abortable): Promise<Tree>;
  /** Whether every object of the tree is in the store's index (G3). Cheap: reads tree nodes, no content. */
  has(ref: SnapshotRef, options?: Abortable): Promise<boolean>;
  /**
   * What differs, in byte order of paths, parents before children; cost follows the difference. A directory counts as
   * changed by existence, kind or mode, not by content. Below an added or removed directory every entry is reported.
   * With `paths`, only these and what lies below them.
   */
  diff(
    from: Tree,
    to: Tree,
    options?: Abortable & { readonly paths?: readonly WorkspacePath[] | undefined },
  ): AsyncIterable<TreeChange>;
  /**
   * The verified bytes of a file, in pieces of at most 1 MiB. `snapshot.object_missing` or `.object_damaged` (with the path
   * given) before a wrong byte is yielded.
   */
  read(
    file: Extract<TreeEntry, { kind: "file" }>,
    options?: Abortable & { readonly path?: WorkspacePath | undefined },
  ): AsyncIterable<Uint8Array>;
  /**
   * Writes the tree into `dest`, an absolute path where nothing or an empty directory is (G8). Omitted names are left out;
   * modes are exact whatever the umask; set-id bits are never gained; stretches of zeros in large files become holes. Checked
   * before the first write: `snapshot.limit`, `.object_missing`, `.name_collision`, `.dest_not_empty`, `.dest_unusable`.
   * On a later failure (`snapshot.materialize_failed`, `.object_damaged`) or an abort what was made is removed again.
   */
  materialize(
    tree: Tree,
    dest: string,
    options?: MaterializeOptions,
  ): Promise<{ readonly entries: number; readonly bytes: number }>;
  /** Reads every object of the refs (default: all pinned ones) and checks its digest. */
  verify(
    options?: Abortable & {
      readonly refs?: readonly SnapshotRef[] | undefined;
      /** Called at most every 100 ms. */
      readonly onProgress?: ((progress: VerifyProgress) => void) | undefined;
    },
  ): Promise<VerifyReport>;

  /**
   * Keeps refs alive under `owner` and `id` (both storage key components), in addition to what is pinned there already;
   * durable on return; the same call again is fine. What a collection was about to remove of them is saved from it; when it
   * was faster, the call rejects with `snapshot.object_missing`.
   */
  pin(
    pin: { readonly owner: string; readonly id: string },
    refs: readonly SnapshotRef[],
    options?: Abortable,
  ): Promise<void>;
  /** Removes one pin, or all of an owner. */
  unpin(pin: { readonly owner: string; readonly id?: string | undefined }, options?: Abortable): Promise<void>;
  /** What is pinned by whom. Rejects with `snapshot.pin_damaged` rather than leave one out. */
  pins(
    options?: Abortable,
  ): Promise<readonly { readonly owner: string; readonly id: string; readonly refs: readonly SnapshotRef[] }[]>;
  /**
   * Gives back the space of what no pin reaches (G2), safely beside captures, readers and other collectors. Without a grace
   * of 0 the first call only condemns; one that comes `graceMs` later frees. Killed anywhere, everything pinned is whole, and
   * the next call goes on. Works on a full disk. Errors: `lease.held`, `lease.lost`, `snapshot.pin_damaged`,
   * `snapshot.not_collected`, `storage.*`.
   */
  collect(options: CollectOptions): Promise<CollectReport>;
  /** Sizes in total and by owner. Reads every directory of every pinned tree and no content; changes nothing. */
  stats(options?: Abortable): Promise<StoreStats>;
  /** Absolute paths below which this store writes: storage and spool. */
  persistencePaths(): readonly string[];
}
