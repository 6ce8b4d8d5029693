/** C087 with real processes: one writer at a time, also through a link to the state directory, also when it is killed. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startProcess } from "../../tests/processes.js";
import { openLocalStorage } from "../storage-local/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionStore } from "./contracts.js";
import { begin, claim, collect, failureOf, idle, past, storeOn } from "./testing/scenes.js";

const writer = "src/session-store/testing/journal-writer.ts";

describe("two processes and one session (C087)", () => {
  let dir: string;
  let state: string;
  let link: string;
  let storage: Storage;
  let store: SessionStore;

  beforeEach(async () => {
    dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
    state = path.join(dir, "state");
    link = path.join(dir, "link");
    storage = await openLocalStorage({ dir: state });
    store = storeOn(storage);
    fs.symlinkSync(state, link);
  });
  afterEach(async () => {
    await storage.close();
    fs.rmSync(dir, { recursive: true, force: true });
  });

  it("refuses the second, naming the first, by whichever path it comes", async () => {
    const journal = await begin(store);
    for (const way of [state, link]) {
      const other = startProcess(writer, [way, journal.sessionId]);
      expect(await other.line()).toBe(`lease.held ${process.pid}`);
      expect((await other.ended).code).toBe(0);
    }
    await journal.append([idle]);
    await journal.close();
  });

  it("lets the next one go on after the writer was killed, with everything that was acknowledged", async () => {
    const id = await past(store);
    const other = startProcess(writer, [link, id]);
    expect(await other.line()).toBe("open");
    expect(await failureOf(store.open(id, claim))).toMatchObject({
      code: "lease.held",
      details: { holder: { pid: other.pid, command: "another process" } },
    });
    expect(await store.list()).toMatchObject([{ id, state: "live" }]);
    for (let number = 1; number <= 5; number++) {
      other.say(String(number));
      expect(await other.line()).toBe(String(number + 1));
    }
    // One more is under way, or done, or not begun, when the kill comes.
    other.say("6");
    other.kill("SIGKILL");
    await other.ended;
    expect(await store.list()).toMatchObject([{ id, state: "interrupted" }]);
    const journal = await store.open(id, claim);
    expect([6, 7]).toContain(journal.head);
    const [next] = await journal.append([idle]);
    await journal.close();
    const events = await collect(store.read(id));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)).toEqual(next);
  });
});
