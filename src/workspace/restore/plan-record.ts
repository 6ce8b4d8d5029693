/**
 * The durable form of a plan (docs/formats/plans.md): its operations with the names of their staged files and backups.
 * Pure: what it is, how it is written down and read back. `layout` chooses the names, `plan-store` keeps the record.
 */
import { canonicalJson, compareNames, pacer, parseWorkspacePath, rootPath } from "../../core/index.js";
import type { CanonicalRoot, Json, PlanId, WorkspacePath } from "../../core/index.js";
import type { ContentId, TreeId } from "../../workspace-store/index.js";
import { isModeChange } from "./plan.js";
import type { PlannedEntry, PlannedOperation } from "./plan.js";

/** An operation and the names that are ours while it is carried out. */
export interface StoredOperation extends PlannedOperation {
  /** Where the file or link to be put in place waits. Absent when none is (a directory, a mode set in place, a deletion). */
  readonly staged?: WorkspacePath | undefined;
  /** Where the file or link that is taken away goes. */
  readonly backup?: WorkspacePath | undefined;
}

export interface PlanRecord {
  readonly planId: PlanId;
  readonly root: CanonicalRoot;
  /** What the layer above needs to write its journal record after a crash. */
  readonly purpose: Json;
  readonly operations: readonly StoredOperation[];
  /** Directories that survive and may have to be made writable for a moment, with the mode they have. */
  readonly relaxed: readonly { readonly path: WorkspacePath; readonly mode: number }[];
}

export type PlanPhase = "staging" | "committing" | "rolling-back" | "committed";

/**
 * Whether a file gets its permission bits where it stands. One that has other names too is replaced instead, and so has
 * names of ours: those other names, which may be outside the root, would change with it (U10).
 */
export const setsModeInPlace = (operation: StoredOperation): boolean =>
  isModeChange(operation) && operation.staged === undefined && operation.backup === undefined;

/** The same operation the other way round: what it took away is put in place, and the reverse. */
export const reversed = (operation: StoredOperation): StoredOperation => ({
  path: operation.path,
  expected: operation.target,
  target: operation.expected,
  staged: operation.backup,
  backup: operation.staged,
});

/**
 * The names in the tree that are ours while the plan is unsettled (U9): staged files and backups. Captures and listings
 * leave out exactly these.
 */
export function ownPathsOf(record: Pick<PlanRecord, "operations">): ReadonlySet<WorkspacePath> {
  const paths = new Set<WorkspacePath>();
  for (const { staged, backup } of record.operations) {
    if (staged !== undefined) paths.add(staged);
    if (backup !== undefined) paths.add(backup);
  }
  return paths;
}

const version = 0;

/** A line of canonical JSON for the head, and one for each operation: so a long plan is written in slices. */
export async function encodePlan(record: PlanRecord): Promise<Buffer> {
  const { planId, root, purpose, operations, relaxed } = record;
  const pace = pacer(undefined);
  const lines = [canonicalJson({ v: version, planId, root, purpose, relaxed, operations: operations.length })];
  for (const { path, expected, target, staged, backup } of operations) {
    lines.push(canonicalJson({ path, expected: expected ?? null, target: target ?? null, staged, backup }));
    await pace();
  }
  return Buffer.from(lines.join("\n"), "utf8");
}

/** Strict: throws `PlanFormatError`, or `path.invalid`, for anything `encodePlan` does not make. */
export async function decodePlan(bytes: Uint8Array): Promise<PlanRecord> {
  const pace = pacer(undefined);
  const [head = "", ...lines] = asUtf8(bytes).split("\n");
  const value = asObject(parseJson(head), "the head");
  if (value.v !== version) throw new PlanFormatError(`version ${String(value.v)} is not ${version}`);
  if (value.operations !== lines.length) throw new PlanFormatError("operations are missing");
  const operations: StoredOperation[] = [];
  for (const line of lines) {
    const operation = asOperation(parseJson(line));
    const before = operations.at(-1);
    if (before !== undefined && compareNames(before.path, operation.path) >= 0) {
      throw new PlanFormatError("operations are not in order");
    }
    operations.push(operation);
    await pace();
  }
  return {
    planId: asText(value.planId, "planId") as PlanId,
    root: asText(value.root, "root") as CanonicalRoot,
    purpose: value.purpose as Json,
    operations,
    relaxed: asArray(value.relaxed, "relaxed").map((item) => {
      const { path, mode } = asObject(item, "a relaxed directory");
      return { path: path === "" ? rootPath : asPath(path), mode: asMode(mode) };
    }),
  };
}

function asOperation(value: unknown): StoredOperation {
  const operation = asObject(value, "an operation");
  return {
    path: asPath(operation.path),
    expected: asEntry(operation.expected),
    target: asEntry(operation.target),
    ...(operation.staged === undefined ? {} : { staged: asPath(operation.staged) }),
    ...(operation.backup === undefined ? {} : { backup: asPath(operation.backup) }),
  };
}

/** The record does not say what a record says. The plan store gives it its name and root. */
export class PlanFormatError extends Error {
  override readonly name = "PlanFormatError";
}

function asUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new PlanFormatError("it is no text", { cause: error });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PlanFormatError("it is no JSON", { cause: error });
  }
}

function asObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new PlanFormatError(`${what} is no object`);
  }
  return value as Readonly<Record<string, unknown>>;
}

function asArray(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new PlanFormatError(`${what} is no array`);
  return value;
}

function asText(value: unknown, what: string): string {
  if (typeof value !== "string") throw new PlanFormatError(`${what} is no text`);
  return value;
}

function asPath(value: unknown): WorkspacePath {
  return parseWorkspacePath(asText(value, "a path"));
}

function asMode(value: unknown): number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 0o777) {
    throw new PlanFormatError("a mode is not permission bits");
  }
  return value as number;
}

function asEntry(value: unknown): PlannedEntry | undefined {
  if (value === null) return undefined;
  const entry = asObject(value, "an entry");
  switch (entry.kind) {
    case "file":
      if (!Number.isSafeInteger(entry.size) || (entry.size as number) < 0) throw new PlanFormatError("a size is none");
      return {
        kind: "file",
        mode: asMode(entry.mode),
        size: entry.size as number,
        id: asText(entry.id, "an id") as ContentId,
      };
    case "directory":
      return { kind: "directory", mode: asMode(entry.mode), id: asText(entry.id, "an id") as TreeId };
    case "symlink":
      return { kind: "symlink", target: asText(entry.target, "a link target") };
    default:
      throw new PlanFormatError(`an entry is of kind ${JSON.stringify(entry.kind)}`);
  }
}
