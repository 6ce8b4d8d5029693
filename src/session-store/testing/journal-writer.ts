/**
 * A process that opens one session and appends what it is told. Arguments: state directory, session id. Says "open" or the
 * code and the holder's pid of what it got instead; then, for each number it reads, appends a turn of that number and says
 * the new head.
 */
import { createInterface } from "node:readline";
import { isLooprigError } from "../../core/index.js";
import type { SessionId } from "../../core/index.js";
import { openLocalStorage } from "../../storage-local/index.js";
import { createSessionStore } from "../store.js";
import { turnStarted } from "./scenes.js";

const [, , dir = "", id = ""] = process.argv;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const storage = await openLocalStorage({ dir });
try {
  const journal = await createSessionStore(storage).open(id as SessionId, { command: "another process" });
  say("open");
  for await (const line of createInterface({ input: process.stdin })) {
    await journal.append([turnStarted(Number(line))]);
    say(String(journal.head));
  }
  await journal.close();
} catch (error) {
  if (!isLooprigError(error, "lease.held")) throw error;
  say(`${error.code} ${error.details.holder?.pid ?? "nobody"}`);
}
await storage.close();
