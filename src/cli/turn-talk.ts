/**
 * A turn as it is told while it runs. Sections (where we are, calls, text, the end) are set apart by an empty line. The
 * answer is stdout's; everything else is talk. A model's text streams to stdout only where that is a terminal: elsewhere only
 * the last message may stand there, and which one is the last is known when it has ended.
 */
import type { CallId, Json } from "../core/index.js";
import type { SessionDelta } from "../session/index.js";
import type { EventOf, SessionEvent } from "../session-store/index.js";
import type { Context } from "./context.js";
import { Progress } from "./progress.js";
import { baselineText, callHead, callResult, driftLine, resultColumn } from "./render-run.js";
import type { ShownCall } from "./render-run.js";
import { oneLine, prose } from "./spelling.js";

type Section = "place" | "calls" | "text" | "end";

interface Call extends ShownCall {
  /** One of several of its step: its line is written when it is done. */
  readonly among: boolean;
  startedAt?: Date;
}

export class TurnTalk {
  readonly #context: Context;
  readonly #place: string;
  readonly #calls = new Map<CallId, Call>();
  #section: Section | undefined;
  /** Whose line has no end yet. */
  #openLine: CallId | undefined;
  /** Whose question is the last line: the call's result goes below it. */
  #asked: CallId | undefined;
  /** What of the present message is on the terminal. */
  #streamed = "";
  #half = "";
  #placed = false;
  /** Of the baseline: later captures run beside the work. */
  readonly #progress: Progress;

  /** `place`: the root, and the session. */
  constructor(context: Context, place: string) {
    this.#context = context;
    this.#place = place;
    this.#progress = new Progress(context.environment.stderr, "baseline", context.globals.quiet);
  }

  /** How many calls there were. */
  get calls(): number {
    return this.#calls.size;
  }

  async part(part: SessionEvent | SessionDelta): Promise<void> {
    if (this.#context.globals.json) {
      this.#remember(part);
      return;
    }
    switch (part.type) {
      case "workspace-checkpointed":
        if (part.trigger === "baseline") await this.where(baselineText(part));
        return;
      case "checkpoint-failed":
        if (part.trigger === "baseline") await this.where(`! no baseline (${oneLine(part.code)})`);
        return;
      case "capture-progress":
        if (!this.#placed) this.#progress.report(part);
        return;
      case "text-delta":
        return this.#stream(part.text);
      case "step-started":
        this.#remember(part);
        return this.#message(part);
      case "tool-started":
        this.#remember(part);
        return this.#begin(part.callId);
      case "tool-done":
        return this.#end(part);
      default:
    }
  }

  /** Where we are; said once, before anything else. */
  async where(more?: string): Promise<void> {
    if (this.#placed) return;
    this.#placed = true;
    await this.#progress.done();
    await this.#say("place", [this.#place, ...(more === undefined ? [] : [more])].join("  "));
  }

  /** What is different from the session that is gone on with. */
  async adopted(event: EventOf<"configuration-adopted">): Promise<void> {
    const line = driftLine(event);
    if (line !== undefined) await this.note(line);
  }

  async note(line: string): Promise<void> {
    await this.where();
    await this.#say("place", line);
  }

  async interrupting(): Promise<void> {
    if (this.#context.globals.json) return;
    await this.where();
    // The terminal shows ^C where the cursor is.
    if (this.#context.environment.stderr.terminal) await this.#context.say("\n");
    this.#openLine = undefined;
    await this.#say(this.#section ?? "place", "interrupting; once more stops at once");
  }

  /** Makes room for a question about this call; what it is answered with is the caller's to read. */
  async asking(callId: CallId, call: ShownCall): Promise<void> {
    const known = this.#calls.get(callId) ?? { ...call, among: false };
    this.#calls.set(callId, known);
    if (!this.#context.globals.json) {
      await this.where();
      await this.#enter("calls");
      this.#asked = callId;
    }
  }

  /** A step that was told by another process: its calls are known here from now on. */
  recall(step: EventOf<"step-started">): void {
    this.#remember(step);
  }

  /** The last section; its lines are painted already. */
  async summary(lines: readonly string[]): Promise<void> {
    await this.#enter("end");
    await this.#context.say(lines.map((line) => `${line}\n`).join(""));
  }

  #remember(part: SessionEvent | SessionDelta): void {
    if (part.type === "step-started") {
      const calls = part.content.flatMap((each) => (each.type === "tool-call" ? [each] : []));
      for (const { callId, name, input } of calls) {
        this.#calls.set(callId, { name, input: parsed(input), among: calls.length > 1 });
      }
    } else if (part.type === "tool-started") {
      const call = this.#calls.get(part.callId);
      if (call !== undefined) call.startedAt = part.at;
    }
  }

  async #stream(text: string): Promise<void> {
    const { stdout } = this.#context.environment;
    if (!stdout.terminal) return;
    await this.#enter("text");
    // Half of a surrogate pair waits for its other half.
    const ready = this.#half + text;
    const cut = /[\ud800-\udbff]$/.test(ready) ? ready.length - 1 : ready.length;
    this.#half = ready.slice(cut);
    this.#streamed += ready.slice(0, cut);
    await stdout.write(prose(ready.slice(0, cut)));
  }

  async #message({ content, finish }: EventOf<"step-started">): Promise<void> {
    const { stdout } = this.#context.environment;
    const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
    const streamed = this.#streamed;
    this.#streamed = "";
    this.#half = "";
    if (text.trim() === "") return;
    const isAnswer =
      !content.some(({ type }) => type === "tool-call") && finish !== "error" && finish !== "interrupted";
    if (stdout.terminal) {
      await this.#enter("text");
      // A reader that was too slow has lost parts of it: then all of it is said again.
      const missing = text.startsWith(streamed) ? text.slice(streamed.length) : `\n${text}`;
      await stdout.write(
        prose(missing.endsWith("\n") || (missing === "" && text.endsWith("\n")) ? missing : `${missing}\n`),
      );
    } else if (isAnswer) {
      // In a log that takes both streams the answer stands apart; to a person it is not shown at all.
      if (!this.#context.environment.stderr.terminal) await this.#enter("text");
      await stdout.write(`${prose(text).trimEnd()}\n`);
    } else await this.#say("text", prose(text).trimEnd());
  }

  async #begin(callId: CallId): Promise<void> {
    const call = this.#calls.get(callId);
    if (call === undefined || call.among || this.#asked === callId || !this.#context.environment.stderr.terminal)
      return;
    await this.#enter("calls");
    await this.#context.say(this.#context.talkStyle.dim(callHead(call)));
    this.#openLine = callId;
  }

  async #end(done: EventOf<"tool-done">): Promise<void> {
    const call = this.#calls.get(done.callId) ?? { name: done.name, input: undefined, among: true };
    const ranMs = call.startedAt === undefined ? undefined : done.at.getTime() - call.startedAt.getTime();
    const result = callResult(call, done, ranMs);
    if (this.#openLine === done.callId) {
      this.#openLine = undefined;
      await this.#context.say(`${this.#context.talkStyle.dim(result)}\n`);
    } else {
      const head = this.#asked === done.callId ? " ".repeat(resultColumn) : callHead(call);
      await this.#say("calls", head + result);
    }
  }

  async #say(section: Section, text: string): Promise<void> {
    await this.#enter(section);
    const { dim } = this.#context.talkStyle;
    await this.#context.say(
      text
        .split("\n")
        .map((line) => `${dim(line)}\n`)
        .join(""),
    );
  }

  async #enter(section: Section): Promise<void> {
    this.#asked = undefined;
    if (this.#openLine !== undefined) {
      this.#openLine = undefined;
      await this.#context.say("\n");
    }
    if (this.#section !== undefined && this.#section !== section) {
      if (this.#streamed !== "") await this.#context.environment.stdout.write("\n");
      await this.#context.say("\n");
    }
    this.#section = section;
  }
}

function parsed(input: string): Json | undefined {
  try {
    return JSON.parse(input) as Json;
  } catch {
    return undefined;
  }
}
