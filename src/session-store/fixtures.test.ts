/**
 * Journals of every release must replay for ever. The files in `fixtures/` were written by the release they are named for
 * and are never made again; a change that breaks them is a change of the format.
 */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import type { SessionId } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import { eventTypes } from "./testing/arbitrary-events.js";
import { catalogKeyOf, ledgerOf, recordsOf } from "./keys.js";
import { encodeEvent, parseRecord } from "./record.js";
import { claim, collect, storeOn } from "./testing/scenes.js";

const fixture = (name: string): URL => new URL(`./fixtures/${name}`, import.meta.url);
const id = "5e551000-0000-4000-8000-000000000001" as SessionId;

const lines = fs.readFileSync(fixture("journal-v0.jsonl"), "utf8").trimEnd().split("\n");

async function stored() {
  const storage = createMemoryStorage();
  const bodies = lines.map((line) => Buffer.from(line));
  await storage.ledger.append(ledgerOf(id), bodies, { expectedHead: 0, epoch: 1 });
  for (const name of fs.readdirSync(fixture("journal-v0.blobs"))) {
    await storage.blobs.put(`${recordsOf(id)}${name}`, [fs.readFileSync(fixture(`journal-v0.blobs/${name}`))]);
  }
  return storage;
}

describe("a journal of version 0", () => {
  it("replays as the events that were appended", async () => {
    const events = await collect(storeOn(await stored()).read(id));
    // The one large input is described in the file of expectations instead of repeated.
    const shown = events.map((event) =>
      event.type === "turn-started" && event.input.length > 1_000
        ? { ...event, input: `${event.input.length} times ${event.input[0] ?? ""}` }
        : event,
    );
    expect(JSON.parse(JSON.stringify(shown))).toEqual(
      JSON.parse(fs.readFileSync(fixture("journal-v0.events.json"), "utf8")),
    );
  });

  it("holds every type of event", async () => {
    const events = await collect(storeOn(await stored()).read(id));
    expect([...new Set(events.map(({ type }) => type))].sort()).toEqual([...eventTypes].sort());
  });

  it("is written today as the same bytes", () => {
    const inline = lines.map((line, index) => [
      line,
      parseRecord(Buffer.from(line), { sessionId: id, seq: index + 1 }),
    ]);
    const rewritten = inline.map(([line, record]) =>
      typeof record === "object" && record.inline ? Buffer.from(encodeEvent(record.event)).toString() : line,
    );
    expect(rewritten).toEqual(lines);
    expect(inline.filter(([, record]) => typeof record === "object" && !record.inline)).toHaveLength(1);
  });

  it("makes the catalog entry it had", async () => {
    const storage = await stored();
    await storeOn(storage).rebuildCatalog();
    const entry = await storage.kv.get(catalogKeyOf(id));
    const kept = fs.readFileSync(fixture("journal-v0.catalog.jsonl"), "utf8").trimEnd();
    expect(Buffer.from(entry?.value ?? []).toString()).toBe(kept);
  });

  it("can be continued", async () => {
    const storage = await stored();
    const journal = await storeOn(storage).open(id, claim);
    await journal.append([{ type: "session-active", doing: "exec" }]);
    await journal.close();
    expect(await storeOn(storage).list()).toMatchObject([{ state: "interrupted", turns: 3, checkpoints: 2 }]);
  });
});
