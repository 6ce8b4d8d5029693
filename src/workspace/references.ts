/** What people type where a snapshot is meant (G7), resolved against the history of one root. Pure. */
import { LooprigError, parseRef } from "../core/index.js";
import type { SnapshotRef } from "../core/index.js";
import type { Checkpoint, ResolvedRef, RootHistory, TurnSummary } from "./contracts.js";

/**
 * `c12`, `t4`, `t4^`, `last`, `now`, a full ref, a label, or eight or more hex digits: tried in this order, so a label
 * never hides a number. A label that was given twice means its newest checkpoint.
 * Throws `ref.unknown`, or `ref.ambiguous` for hex digits that fit several refs.
 */
export function resolveRef(history: RootHistory, given: string): ResolvedRef {
  if (given === "now") return { given, ref: "now" };
  if (given === "last") return last(history, given);
  const checkpoint = /^c([1-9]\d*)$/.exec(given);
  if (checkpoint) return numberedCheckpoint(history, given, Number(checkpoint[1]));
  const turn = /^t([1-9]\d*)(\^?)$/.exec(given);
  if (turn) return turnEdge(history, given, Number(turn[1]), turn[2] === "^" ? "start" : "end");
  if (given.startsWith("v1:")) return fullRef(history, given, parseRef(given));
  const labelled = history.checkpoints.findLast((each) => each.label === given);
  if (labelled) return { given, ref: labelled.ref, checkpoint: labelled };
  if (/^[0-9a-f]{8,64}$/.test(given)) return hexPrefix(history, given);
  throw unknown(history, given);
}

/** `REF:path` → both halves; a full ref keeps its own colons. `path` is undefined when there is none. */
export function splitRefPath(text: string): { readonly ref: string; readonly path: string | undefined } {
  const full = /^(v1:sha256:[0-9a-f]{64})(?::(.*))?$/s.exec(text);
  if (full) return { ref: full[1] as string, path: full[2] };
  const colon = text.indexOf(":");
  return colon < 0 ? { ref: text, path: undefined } : { ref: text.slice(0, colon), path: text.slice(colon + 1) };
}

/** The turn a `t4` names. Throws `ref.unknown`. */
export function resolveTurn(history: RootHistory, given: string): TurnSummary {
  const number = /^t([1-9]\d*)$/.exec(given)?.[1];
  const turn = history.turns.find((each) => each.number === Number(number));
  if (turn === undefined) throw unknownTurn(history, given);
  return turn;
}

function last(history: RootHistory, given: string): ResolvedRef {
  const checkpoint = history.checkpoints.at(-1);
  if (checkpoint === undefined) throw unknown(history, given);
  return { given, ref: checkpoint.ref, checkpoint };
}

function numberedCheckpoint(history: RootHistory, given: string, number: number): ResolvedRef {
  const checkpoint = history.checkpoints.find((each) => each.number === number);
  if (checkpoint === undefined) throw unknown(history, given);
  return { given, ref: checkpoint.ref, checkpoint };
}

function turnEdge(history: RootHistory, given: string, number: number, edge: "start" | "end"): ResolvedRef {
  const turn = history.turns.find((each) => each.number === number);
  if (turn === undefined) throw unknownTurn(history, given);
  const ref = edge === "start" ? turn.from : turn.to;
  if (ref === undefined) {
    throw new LooprigError("ref.unknown", `Cannot find the ${edge} of t${number}: it was not captured`, { given });
  }
  const checkpoint = history.checkpoints.findLast((each) => each.turn === number && each.ref === ref);
  return { given, ref, turn, ...(checkpoint === undefined ? {} : { checkpoint }) };
}

function fullRef(history: RootHistory, given: string, ref: SnapshotRef): ResolvedRef {
  const checkpoint = newest(history, ref);
  return { given, ref, ...(checkpoint === undefined ? {} : { checkpoint }) };
}

function hexPrefix(history: RootHistory, given: string): ResolvedRef {
  const refs = new Set(
    history.checkpoints.map((each) => each.ref).filter((ref) => ref.startsWith(`v1:sha256:${given}`)),
  );
  const [ref, ...others] = refs;
  if (ref === undefined) throw unknown(history, given);
  if (others.length > 0) {
    throw new LooprigError(
      "ref.ambiguous",
      `Cannot tell which snapshot ${JSON.stringify(given)} means: ${refs.size} start so; write more digits`,
      {
        given,
        candidates: [...refs],
      },
    );
  }
  return fullRef(history, given, ref);
}

const newest = (history: RootHistory, ref: SnapshotRef): Checkpoint | undefined =>
  history.checkpoints.findLast((each) => each.ref === ref);

function unknownTurn(history: RootHistory, given: string): LooprigError<"ref.unknown"> {
  const newestTurn = history.turns.at(-1);
  const reach =
    newestTurn === undefined ? "there is no turn here yet" : `the newest turn here is t${newestTurn.number}`;
  return unknown(history, given, reach);
}

function unknown(history: RootHistory, given: string, told?: string): LooprigError<"ref.unknown"> {
  const newestNumber = history.checkpoints.at(-1)?.number;
  const reach =
    newestNumber === undefined
      ? "there is no checkpoint here yet"
      : (told ?? `the newest checkpoint here is c${newestNumber}`);
  return new LooprigError(
    "ref.unknown",
    `Cannot find ${JSON.stringify(given)} in ${history.root}: ${reach}`,
    { given },
    newestNumber === undefined ? { hint: "looprig exec -- <command> takes the first" } : {},
  );
}
