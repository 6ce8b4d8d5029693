/**
 * A session with a model that does its worst, on real storage and real files. `attack` plays one turn of it and proves what
 * must hold after any: the tree outside the root is as it was, the next turn works, and the journal read from the store gives
 * exactly the conversation that the model was told. `proveResumable` goes on from that journal with another session.
 */
import fs from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import type { SessionId } from "../../src/core/index.js";
import { defineLoop, emptyConversation, modelName, withEvents } from "../../src/loop/index.js";
import type { LanguageModel } from "../../src/loop/index.js";
import { toPrompt } from "../../src/loop/internal.js";
import { calls, fakeModel, finish, says } from "../../src/loop/testing/models.js";
import type { CallOptions } from "../../src/loop/testing/models.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { RigSession } from "../../src/rig/index.js";
import { createSessionStore } from "../../src/session-store/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import type { ToolDefinition } from "../../src/tool/index.js";
import { Playground, listTree } from "../playground.js";

export const defineRig = rigDefiner(() => ({}));

/** What the model was told of its calls, in the order in which it made them. */
export interface Told {
  readonly tool: string;
  /** "text" or "error-text". */
  readonly type: string;
  readonly text: string;
}

export interface Attack {
  readonly told: readonly Told[];
  readonly events: readonly SessionEvent[];
  readonly result: Awaited<Awaited<ReturnType<RigSession["submit"]>>["done"]>;
}

/** The parts of a stream, a stream, or what the provider does instead of giving one. */
export type Answer =
  readonly unknown[] | ReadableStream<unknown> | (() => readonly unknown[] | ReadableStream<unknown>);

export interface SceneOptions {
  /** Beside the built-in ones. */
  readonly tools?: readonly ToolDefinition[];
  readonly limits?: { readonly steps?: number; readonly toolCalls?: number };
  /** Answers gates; default yes. */
  readonly approve?: boolean;
}

export class HostileScene implements AsyncDisposable {
  readonly place = new Playground();
  readonly outside = path.join(this.place.dir, "outside");
  readonly #options: SceneOptions;
  readonly #answers: Answer[] = [];
  readonly prompts: CallOptions["prompt"][] = [];
  readonly model: LanguageModel = fakeModel((_, { prompt }) => {
    this.prompts.push(prompt);
    const answer = this.#answers.shift() ?? [...says("Fine."), finish()];
    return typeof answer === "function" ? answer() : answer;
  });
  #session: RigSession<string, true> | undefined;

  constructor(options: SceneOptions = {}) {
    this.#options = options;
    fs.mkdirSync(path.join(this.outside, "deep"), { recursive: true });
    fs.writeFileSync(path.join(this.outside, "secret"), "not for models\n");
    fs.writeFileSync(path.join(this.outside, "deep", "secret"), "not for models either\n");
    this.place.write({ "a.txt": "one\ntwo\n" });
  }

  /** All there is beside the root and the store. */
  beside(): unknown {
    const { root, stateDir, dir } = this.place;
    return fs.readdirSync(dir).flatMap((name) => {
      const at = path.join(dir, name);
      return at === root || at === stateDir ? [] : [[name, listTree(at)]];
    });
  }

  async session(): Promise<RigSession<string, true>> {
    this.#session ??= await (await this.rig()).startSession();
    return this.#session;
  }

  async rig(model: LanguageModel = this.model) {
    const { tools = [], limits } = this.#options;
    return defineRig({
      storage: await this.place.storage(),
      loops: [
        defineLoop({
          name: "operator",
          model,
          tools: [fileTools(), bash({ needsApproval: false }), ...tools],
          limits,
        }),
      ],
      exclusiveWorkspace: { root: this.place.root },
      snapshots: "manual",
    });
  }

  /** What the model answers next. */
  answer(answer: Answer): void {
    this.#answers.push(answer);
  }

  /** One turn in which the model answers as given, and then as it likes; what it was told, and what is on record. */
  async turn(
    answers: readonly Answer[],
    during?: (event: SessionEvent) => void,
    onText?: (text: string) => void,
  ): Promise<Attack> {
    const session = await this.session();
    this.#answers.push(...answers);
    const before = this.prompts.length;
    const turn = await session.submit("go on");
    const events: SessionEvent[] = [];
    for await (const part of turn) {
      if (part.type === "text-delta") onText?.(part.text);
      if (!("seq" in part)) continue;
      events.push(part);
      during?.(part);
      if (part.type === "gate-opened") await session.respond(part.gateId, { approve: this.#options.approve ?? true });
    }
    const result = await turn.done;
    this.#answers.length = 0;
    return { events, result, told: this.prompts.slice(before).flatMap((prompt) => toldLast(prompt)) };
  }

  /** A turn with one hostile answer, and the proof that it did no harm. */
  async attack(answers: readonly Answer[], during?: (event: SessionEvent) => void): Promise<Attack> {
    const outside = this.beside();
    const attack = await this.turn(answers, during);
    expect(this.beside()).toEqual(outside);
    await this.proveUsable();
    return attack;
  }

  /** One message with these calls. */
  attackCalls(...made: readonly unknown[]): Promise<Attack> {
    return this.attack([[...made, finish("tool-calls")]]);
  }

  call(tool: string, input: unknown, id?: string): Promise<Attack> {
    return this.attackCalls(calls(tool, input, id));
  }

  /** The next turn works, and the journal alone gives the conversation that the model was told. */
  async proveUsable(): Promise<void> {
    expect((await this.turn([])).result).toMatchObject({ status: "done", text: "Fine." });
    const { id } = await this.session();
    const events: SessionEvent[] = [];
    for await (const event of createSessionStore(await this.place.storage()).read(id)) events.push(event);
    const loopId = events.find(({ type }) => type === "loop-started")?.loopId;
    const asked = events.slice(
      0,
      events.findLastIndex(({ type }) => type === "step-started"),
    );
    const replayed = toPrompt(withEvents(emptyConversation, asked, loopId), {
      ...{ model: modelName(this.model), specificationVersion: this.model.specificationVersion },
    });
    expect(this.prompts.at(-1)).toEqual(replayed);
  }

  /** The session goes on from its journal, with all that was said before. */
  async proveResumable(): Promise<void> {
    const { id } = await this.session();
    const said = this.prompts.at(-1) ?? [];
    await this.close();
    this.#session = await this.resume(id);
    expect((await this.turn([])).result).toMatchObject({ status: "done", text: "Fine." });
    expect(this.prompts.at(-1)?.slice(0, said.length)).toEqual(said);
  }

  async resume(id: SessionId, model?: LanguageModel): Promise<RigSession<string, true>> {
    return (await this.rig(model)).resumeSession(id);
  }

  /** Goes on with a session that a test resumed in a way of its own. */
  adopt(session: RigSession<string, true>): void {
    this.#session = session;
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    await this.place[Symbol.asyncDispose]();
  }
}

/** The results at the end of a prompt; that a turn comes to its limit is said after them. */
function toldLast(prompt: CallOptions["prompt"]): readonly Told[] {
  const closing = JSON.stringify(prompt.at(-1)).includes("This turn has come to its limit");
  const last = prompt.at(closing ? -2 : -1);
  if (last?.role !== "tool") return [];
  const results = last.content as readonly {
    readonly toolName: string;
    readonly output: { readonly type: string; readonly value: string };
  }[];
  return results.map(({ toolName, output }) => ({ tool: toolName, type: output.type, text: output.value }));
}
