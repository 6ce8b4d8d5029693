/** Questions to the user (T5): one answer each, on record before anything follows from it, and none behind the turn's end. */
import { expect, it } from "vitest";
import type { GateAnswer, Session, Turn } from "../../src/session/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { Playground } from "../playground.js";
import { journalOf, only, rigOn } from "./scenes.js";

const question = { calls: [{ tool: "Careful", input: { what: "it" } }] };
const steps = [question, { text: "Done." }];

/** A turn that stands at its question. */
async function asked(session: Session): Promise<{ readonly turn: Turn; readonly gateId: string }> {
  const turn = await session.submit("do it");
  for await (const part of turn) if (part.type === "gate-opened") return { turn, gateId: part.gateId };
  throw new Error("the turn ended without a question");
}

const yes: GateAnswer = { approve: true };
const no: GateAnswer = { approve: false, reason: "no" };
const unknown = { status: "rejected", reason: expect.objectContaining({ code: "session.unknown_gate" }) as unknown };

it("of two answers given at once the first is taken and journaled, and the other one is told", async () => {
  await using place = new Playground();
  const storage = createMemoryStorage();
  await using session = await (await rigOn(place, { storage, steps })).startSession();
  const { turn, gateId } = await asked(session);
  const answers = await Promise.allSettled([session.respond(gateId, yes), session.respond(gateId, no)]);
  expect(answers).toEqual([{ status: "fulfilled", value: undefined }, unknown]);
  await turn.done;
  const events = await journalOf(storage, session.id);
  expect(only(events, "gate-resolved")).toMatchObject([{ gateId, approved: true }]);
  expect(only(events, "tool-done")).toMatchObject([{ outcome: "ok", text: "did it" }]);
});

it("an answer after an interrupt has ended the turn is refused and not journaled", async () => {
  await using place = new Playground();
  const storage = createMemoryStorage();
  await using session = await (await rigOn(place, { storage, steps })).startSession();
  const { turn, gateId } = await asked(session);
  const interrupted = session.interrupt();
  const answers = await Promise.allSettled([session.respond(gateId, yes), interrupted]);
  expect(answers).toEqual([unknown, { status: "fulfilled", value: undefined }]);
  await expect(session.respond(gateId, yes)).rejects.toMatchObject({ code: "session.unknown_gate" });
  expect(await turn.done).toMatchObject({ status: "interrupted" });
  expect(only(await journalOf(storage, session.id), "gate-resolved")).toEqual([]);
});

it("an answer that an interrupt overtakes is on record before the turn's end", async () => {
  await using place = new Playground();
  const storage = createMemoryStorage();
  await using session = await (await rigOn(place, { storage, steps })).startSession();
  const { turn, gateId } = await asked(session);
  await Promise.all([session.respond(gateId, yes), session.interrupt()]);
  expect(await turn.done).toMatchObject({ status: "interrupted" });
  const types = (await journalOf(storage, session.id)).map(({ type }) => type);
  expect(types.filter((type) => /^gate-|^turn-i/.test(type))).toEqual([
    "gate-opened",
    "gate-resolved",
    "turn-interrupted",
  ]);
});

it("an answer that cannot be journaled leaves the question open, for whoever waits to answer it too", async () => {
  await using place = new Playground();
  const storage = createMemoryStorage();
  let full = false;
  const append = storage.ledger.append.bind(storage.ledger);
  storage.ledger.append = async (...args) => {
    if (!full) return append(...args);
    full = false;
    throw Object.assign(new Error("the disk is full"), { code: "ENOSPC" });
  };
  await using session = await (await rigOn(place, { storage, steps })).startSession();
  const { turn, gateId } = await asked(session);
  full = true;
  await expect(session.respond(gateId, yes)).rejects.toThrow("the disk is full");
  full = true;
  const answers = await Promise.allSettled([session.respond(gateId, yes), session.respond(gateId, no)]);
  expect(answers.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(await turn.done).toMatchObject({ status: "done", text: "Done." });
  const events = await journalOf(storage, session.id);
  expect(only(events, "gate-resolved")).toMatchObject([{ gateId, approved: false, reason: "no" }]);
  expect(only(events, "tool-done")).toMatchObject([{ outcome: "refused" }]);
});

it.each([
  ["no object", "yes", "answer", "a text"],
  ["nothing", null, "answer", "null"],
  ["a yes that is a text", { approve: "yes" }, "approve", "a text"],
  ["neither yes nor no", {}, "approve", "undefined"],
  ["a reason that is no text", { approve: false, reason: 5 }, "reason", "5"],
])("an answer of %s is refused, and the question stays open", async (_, answer, field, given) => {
  await using place = new Playground();
  const storage = createMemoryStorage();
  await using session = await (await rigOn(place, { storage, steps })).startSession();
  const { turn, gateId } = await asked(session);
  await expect(session.respond(gateId, answer as never)).rejects.toMatchObject({
    code: "option.invalid",
    details: { field, given },
  });
  await session.respond(gateId, yes);
  expect(await turn.done).toMatchObject({ status: "done" });
});

it.each([
  [5, "5"],
  [undefined, "undefined"],
  [null, "null"],
  [["go"], "an array"],
  [{ text: "go" }, "an object"],
  [() => "go", "a function"],
  ["  ", "a blank text"],
])("an input that is no text, or a blank one, is refused for what it is: %j", async (input, given) => {
  await using place = new Playground();
  await using session = await (await rigOn(place, { storage: createMemoryStorage() })).startSession();
  await expect(session.submit(input as never)).rejects.toMatchObject({
    code: "option.invalid",
    message: `Cannot submit a turn with ${given} as \`input\`: wanted a text that is not blank`,
    details: { field: "input", given },
  });
});
