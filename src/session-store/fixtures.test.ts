/**
 * Journals of every release must replay for ever. The files in `fixtures/` were written by the release they are named for
 * and are never made again; a change that breaks them is a change of the format. Catalog entries are folded from journals, so
 * they alone follow what is folded. New types of events come with a file of
 * their own.
 */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import type { SessionId } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { eventTypes } from "./testing/arbitrary-events.js";
import { catalogKeyOf, ledgerOf, recordsOf } from "./keys.js";
import { encodeEvent, parseRecord } from "./record.js";
import { claim, collect, storeOn } from "./testing/scenes.js";

interface Golden {
  readonly name: string;
  readonly id: SessionId;
  /** Records that lie in blobs. */
  readonly outOfLine: number;
  readonly summary: { readonly turns: number; readonly checkpoints: number };
}

const goldens: readonly Golden[] = [
  {
    name: "journal-v0",
    id: "5e551000-0000-4000-8000-000000000001" as SessionId,
    outOfLine: 1,
    summary: { turns: 3, checkpoints: 2 },
  },
  {
    name: "journal-v0-loops",
    id: "5e551000-0000-4000-8000-000000000002" as SessionId,
    outOfLine: 0,
    summary: { turns: 2, checkpoints: 0 },
  },
  {
    name: "journal-v0-restores",
    id: "5e551000-0000-4000-8000-000000000003" as SessionId,
    outOfLine: 0,
    summary: { turns: 1, checkpoints: 2 },
  },
  {
    name: "journal-v0-windows",
    id: "5e551000-0000-4000-8000-000000000004" as SessionId,
    outOfLine: 0,
    summary: { turns: 1, checkpoints: 3 },
  },
];

const fixture = (name: string): URL => new URL(`./fixtures/${name}`, import.meta.url);
const linesOf = ({ name }: Golden): readonly string[] =>
  fs
    .readFileSync(fixture(`${name}.jsonl`), "utf8")
    .trimEnd()
    .split("\n");

async function stored(golden: Golden) {
  const { name, id } = golden;
  const storage = createMemoryStorage();
  const bodies = linesOf(golden).map((line) => Buffer.from(line));
  await storage.ledger.append(ledgerOf(id), bodies, { expectedHead: 0, epoch: 1 });
  const blobs = fixture(`${name}.blobs`);
  for (const blob of fs.existsSync(blobs) ? fs.readdirSync(blobs) : []) {
    await storage.blobs.put(`${recordsOf(id)}${blob}`, [fs.readFileSync(fixture(`${name}.blobs/${blob}`))]);
  }
  return storage;
}

const replayed = async (golden: Golden) => collect(storeOn(await stored(golden)).read(golden.id));

describe.each(goldens)("the journal $name", (golden) => {
  const { name, id, outOfLine, summary } = golden;

  it("replays as the events that were appended", async () => {
    const events = await replayed(golden);
    // The one large input is described in the file of expectations instead of repeated.
    const shown = events.map((event) =>
      event.type === "turn-started" && event.input.length > 1_000
        ? { ...event, input: `${event.input.length} times ${event.input[0] ?? ""}` }
        : event,
    );
    expect(JSON.parse(JSON.stringify(shown))).toEqual(
      JSON.parse(fs.readFileSync(fixture(`${name}.events.json`), "utf8")),
    );
  });

  it("is written today as the same bytes", () => {
    const lines = linesOf(golden);
    const inline = lines.map((line, index) => [
      line,
      parseRecord(Buffer.from(line), { sessionId: id, seq: index + 1 }),
    ]);
    const rewritten = inline.map(([line, record]) =>
      typeof record === "object" && record.inline ? Buffer.from(encodeEvent(record.event)).toString() : line,
    );
    expect(rewritten).toEqual(lines);
    expect(inline.filter(([, record]) => typeof record === "object" && !record.inline)).toHaveLength(outOfLine);
  });

  it("makes the catalog entry it had", async () => {
    const storage = await stored(golden);
    await storeOn(storage).rebuildCatalog();
    const entry = await storage.kv.get(catalogKeyOf(id));
    const kept = fs.readFileSync(fixture(`${name}.catalog.jsonl`), "utf8").trimEnd();
    expect(Buffer.from(entry?.value ?? []).toString()).toBe(kept);
  });

  it("can be continued", async () => {
    const storage = await stored(golden);
    const journal = await storeOn(storage).open(id, claim);
    await journal.append([{ type: "session-active", doing: "exec" }]);
    await journal.close();
    expect(await storeOn(storage).list()).toMatchObject([{ state: "interrupted", ...summary }]);
  });
});

it("the golden journals hold every type of event between them", async () => {
  const types = await Promise.all(goldens.map(async (golden) => (await replayed(golden)).map(({ type }) => type)));
  expect([...new Set(types.flat())].sort()).toEqual([...eventTypes].sort());
});
