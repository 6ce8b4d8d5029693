/**
 * What was dropped, on record: one value of the KV per session, `dropped/<session>`, that names its checkpoints by number and
 * says when each was let go. It is written before the first pin goes, so that a checkpoint without its pin always has an
 * explanation; a pin that outlives its record is removed by the next run. The journal stays as it was: what was taken was taken.
 */
import { canonicalJson, isLooprigError, parseSessionId } from "../../core/index.js";
import type { Abortable, SessionId } from "../../core/index.js";
import { kvValueBytesMax } from "../../storage/index.js";
import type { Kv, KvEntry } from "../../storage/index.js";

/** The checkpoints of one session that were dropped, by number, and when. */
export type Dropped = ReadonlyMap<number, Date>;

const prefix = "dropped/";
const keyOf = (id: SessionId): string => `${prefix}${id}`;
const attemptsMax = 100;

interface Stored {
  readonly v: 0;
  /** Numbers from first to last, both included; a range may hold numbers of other sessions, which are nothing here. */
  readonly drops: readonly { readonly at: string; readonly ranges: readonly (readonly [number, number])[] }[];
}

/** What is on record of the sessions given. A number in a range counts whether or not the session has it. */
export async function readDropped(
  kv: Kv,
  sessions: ReadonlySet<SessionId>,
  options: Abortable = {},
): Promise<ReadonlyMap<SessionId, (number: number) => Date | undefined>> {
  const found = new Map<SessionId, (number: number) => Date | undefined>();
  if (sessions.size === 0) return found;
  for (const entry of await kv.list(prefix, options)) {
    const id = sessionOf(entry.key);
    if (id !== undefined && sessions.has(id)) found.set(id, lookup(parse(entry)));
  }
  return found;
}

/**
 * Adds numbers to what is on record; `own` are all the numbers of the session in order, which tells what a range may close
 * over.
 */
export async function recordDropped(
  kv: Kv,
  id: SessionId,
  { numbers, own, at }: { readonly numbers: ReadonlySet<number>; readonly own: readonly number[]; readonly at: Date },
  options: Abortable = {},
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const entry = await kv.get(keyOf(id), options);
    const known = lookup(entry === undefined ? { v: 0, drops: [] } : parse(entry));
    const dropped = new Map(
      own.flatMap((number) => {
        const when = known(number) ?? (numbers.has(number) ? at : undefined);
        return when === undefined ? [] : [[number, when] as const];
      }),
    );
    try {
      await kv.set(keyOf(id), encode(own, dropped), { ...options, revision: entry?.revision ?? 0 });
      return;
    } catch (error) {
      if (!isLooprigError(error, "kv.conflict") || attempt === attemptsMax) throw error;
    }
  }
}

/** With the session its record goes; absent is fine. */
export async function forgetDropped(kv: Kv, id: SessionId, options: Abortable = {}): Promise<void> {
  const entry = await kv.get(keyOf(id), options);
  if (entry !== undefined) await kv.delete(keyOf(id), { ...options, revision: entry.revision });
}

function encode(own: readonly number[], dropped: Dropped): Uint8Array {
  const exact = Buffer.from(canonicalJson({ v: 0, drops: dropsOf(own, dropped) }));
  if (exact.length <= kvValueBytesMax) return exact;
  // Dates of tens of thousands of scattered numbers do not fit; that they were dropped does.
  const latest = new Date(Math.max(...[...dropped.values()].map((at) => at.getTime())));
  const coarse = new Map([...dropped.keys()].map((number) => [number, latest]));
  return Buffer.from(canonicalJson({ v: 0, drops: dropsOf(own, coarse) }));
}

function dropsOf(own: readonly number[], dropped: Dropped): Stored["drops"] {
  const drops = new Map<string, [number, number][]>();
  let before: string | undefined;
  for (const number of own) {
    const at = dropped.get(number)?.toISOString();
    const ranges = at === undefined ? [] : (drops.get(at) ?? []);
    const last = ranges.at(-1);
    if (at !== undefined) {
      if (before === at && last !== undefined) last[1] = number;
      else ranges.push([number, number]);
      drops.set(at, ranges);
    }
    before = at;
  }
  return [...drops].map(([at, ranges]) => ({ at, ranges }));
}

const lookup =
  ({ drops }: Stored) =>
  (number: number): Date | undefined => {
    const drop = drops.find(({ ranges }) => ranges.some(([first, last]) => first <= number && number <= last));
    return drop === undefined ? undefined : new Date(drop.at);
  };

function sessionOf(key: string): SessionId | undefined {
  try {
    return parseSessionId(key.slice(prefix.length));
  } catch (error) {
    if (isLooprigError(error, "session_id.invalid")) return undefined;
    throw error;
  }
}

/** A value nobody can read is as good as none: its checkpoints say that they are not in the store, and nothing worse. */
function parse({ value }: KvEntry): Stored {
  try {
    const data = JSON.parse(Buffer.from(value).toString("utf8")) as Stored;
    if ((data.v as number) === 0 && Array.isArray(data.drops)) return data;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return { v: 0, drops: [] };
}
