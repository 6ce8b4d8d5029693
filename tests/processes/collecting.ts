/**
 * Collects without a grace, over and over, until it hears a line. Prints a line when it begins and, at the end, one of JSON:
 * how many collections there were, and how often another collector was at it.
 *
 * argv: state directory
 */
import { createInterface } from "node:readline";
import { isLooprigError, mintSessionId } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [dir = ""] = process.argv.slice(2);
const stop = new AbortController();
createInterface({ input: process.stdin }).once("line", () => {
  stop.abort();
});

const storage = await openLocalStorage({ dir });
const store = createWorkspaceStore(storage);
const claim = { sessionId: mintSessionId(), command: "collecting" };
const told = { collections: 0, freed: 0, held: 0 };
console.log("ready");
while (!stop.signal.aborted) {
  try {
    const { freed } = await store.collect({ claim, graceMs: 0, fill: 1 });
    told.collections++;
    told.freed += freed.packs;
  } catch (error) {
    if (!isLooprigError(error, "lease.held")) throw error;
    told.held++;
  }
}
console.log(JSON.stringify(told));
await storage.close();
process.exit(0);
