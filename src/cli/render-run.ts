/** What `run` says of an agent's work, line by line. Pure. Whatever a model or a tool wrote is made safe to show. */
import type { Json } from "../core/index.js";
import type { EventOf, TokenUsage } from "../session-store/index.js";
import { count, duration, number } from "./amounts.js";
import { displayWidth, fit } from "./columns.js";
import { oneLine } from "./spelling.js";

/** A call as far as people want to know of it. */
export interface ShownCall {
  readonly name: string;
  readonly input: Json | undefined;
}

const nameWidth = 6;
const targetWidth = 20;
/** Where results stand: behind the mark, the name and the target. */
export const resultColumn = 2 + nameWidth + 1 + targetWidth;
const targetMax = 60;
const messageMax = 72;

/** `› Read   src/parse.js        `: what follows it starts at `resultColumn`, or behind a target that is longer. */
export function callHead(call: ShownCall): string {
  const target = fit(targetOf(call), targetMax);
  const name = fit(oneLine(call.name), 24);
  return `› ${padded(name, nameWidth)} ${padded(target, targetWidth - 2)}  `;
}

/** All of what a call would run, for the one who is to approve it; undefined when its head shows it whole. */
export function wholeCommand(call: ShownCall): string | undefined {
  const command = memberOf(call.input, "command") ?? JSON.stringify(call.input ?? {});
  return command === "{}" || (targetOf(call) === command && displayWidth(command) <= targetMax) ? undefined : command;
}

function targetOf({ input }: ShownCall): string {
  const names = ["file_path", "command", "pattern", "path"];
  const told = names.map((name) => memberOf(input, name)).find((each) => each !== undefined);
  const inputIsEmpty = input === undefined || JSON.stringify(input) === "{}";
  return oneLine(told ?? (inputIsEmpty ? "" : JSON.stringify(input)));
}

const memberOf = (input: Json | undefined, name: string): string | undefined => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const member = (input as Readonly<Record<string, Json | undefined>>)[name];
  return typeof member === "string" ? member : undefined;
};

/** What came of a call: `61 lines`, `exit 1   2.1 s`, `+2 -1`, or the first line of what went wrong. */
export function callResult(call: ShownCall, done: EventOf<"tool-done">, ranMs: number | undefined): string {
  const exit = exitOf(done.data);
  if (exit !== undefined) return ranMs === undefined ? exit : `${exit}   ${duration(ranMs)}`;
  switch (done.outcome) {
    case "ok":
      return successOf(call, done.text);
    case "error":
      return `failed: ${firstLine(done.text)}`;
    case "refused":
      return firstLine(done.text.replace(/^This call did not run: (?:it was )?/, ""));
    case "unknown":
      return "interrupted; it may have done a part of its work";
    default:
      return done.outcome satisfies never;
  }
}

function successOf(call: ShownCall, text: string): string {
  switch (call.name) {
    case "Read":
      return count(text.match(/^ *\d+\t/gm)?.length ?? 0, "line");
    case "Edit":
      return editCount(call.input, text);
    case "Write":
      return text.startsWith("Created")
        ? `created, ${count(linesIn(memberOf(call.input, "content") ?? ""), "line")}`
        : count(linesIn(memberOf(call.input, "content") ?? ""), "line");
    case "List":
    case "Glob":
      return count(results(text), call.name === "List" ? "entry" : "path", call.name === "List" ? "entries" : "paths");
    case "Grep":
      return count(results(text), "line");
    default:
      return firstLine(text);
  }
}

/** Lines that are no notice in brackets. */
const results = (text: string): number =>
  text.split("\n").filter((line) => line !== "" && !/^\[.*\]$/.test(line)).length;

function exitOf(data: Json | undefined): string | undefined {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return undefined;
  const { exitCode, ended } = data as Readonly<Record<string, Json | undefined>>;
  if (typeof exitCode !== "number") return undefined;
  return ended === "timeout" ? "timed out" : ended === "abort" ? "interrupted" : `exit ${exitCode}`;
}

/** Lines that an edit takes and gives, as far as its two texts tell: those they share at both ends are not counted. */
function editCount(input: Json | undefined, text: string): string {
  const before = linesOf(memberOf(input, "old_string") ?? "");
  const after = linesOf(memberOf(input, "new_string") ?? "");
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const times = Number(/^Edited .*, (\d+) times\./.exec(text)?.[1] ?? 1);
  return `+${(after.length - head - tail) * times} -${(before.length - head - tail) * times}`;
}

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
const linesIn = (text: string): number => linesOf(text).length;
const firstLine = (text: string): string => fit(oneLine(text.split("\n", 1)[0] ?? ""), messageMax);

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - displayWidth(text)));

export interface EndedTurn {
  readonly number: number;
  readonly end: EventOf<"turn-done" | "turn-failed" | "turn-interrupted">;
  readonly calls: number;
  /** `c2`: the checkpoint it ended with, if it changed anything. */
  readonly checkpoint: number | undefined;
  readonly protected: boolean;
}

/** `t1 done   5 calls, 8.4k in, 0.9k out   c2`. */
export function turnLine({ number: turn, end, calls, checkpoint, protected: kept }: EndedTurn): string {
  const state =
    end.type === "turn-done"
      ? end.limit === undefined
        ? "done"
        : `stopped at its limit of ${end.limit === "steps" ? "steps" : "calls"}`
      : end.type === "turn-failed"
        ? "failed"
        : "interrupted";
  const facts = [
    ...(calls === 0 ? [] : [count(calls, "call")]),
    ...(end.type === "turn-done" ? tokens(end.usage ?? {}) : []),
  ].join(", ");
  const left = !kept
    ? "! not protected: it could not be captured completely, so undo is refused"
    : checkpoint === undefined
      ? "changed nothing"
      : `c${checkpoint}`;
  return [`t${turn} ${state}`, ...(facts === "" ? [] : [facts]), left].join("   ");
}

const tokens = ({ inputTokens, outputTokens }: TokenUsage): readonly string[] => [
  ...(inputTokens === undefined ? [] : [`${thousands(inputTokens)} in`]),
  ...(outputTokens === undefined ? [] : [`${thousands(outputTokens)} out`]),
];

/** `8.4k`; below a hundred as it is. */
const thousands = (n: number): string =>
  n < 100 ? String(n) : n < 999_950 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1_000_000).toFixed(1)}M`;

/** What was adopted of a configuration that differs from the one the session was stored with. */
export function driftLine({ changes }: EventOf<"configuration-adopted">): string | undefined {
  const told = changes.flatMap(({ field, stored, live }) => {
    if (field === "root.identity") return ["another directory stands at the root"];
    const [, part] = /^loops\.[^.]+\.(\w+)$/.exec(field) ?? [];
    if (part === "model") return [`model ${modelOf(stored)}, now ${modelOf(live)}`];
    if (part === "system") return ["the instructions"];
    return [oneLine(part ?? field)];
  });
  return told.length === 0 ? undefined : `changed since then: ${told.join("; ")}`;
}

function modelOf(manifest: Json): string {
  const provider = memberOf(manifest, "provider") ?? "?";
  return oneLine(`${provider}/${memberOf(manifest, "modelId") ?? "?"}`);
}

/** `c1 baseline, 214 files`. */
export const baselineText = (event: EventOf<"workspace-checkpointed">): string =>
  `c${event.number} baseline, ${number(event.files)} ${event.files === 1 ? "file" : "files"}`;
