/**
 * Captures into a shared store over and over: each round edits a root of its own, and captures it and a root all share.
 * Prints one line of JSON per capture, and waits for a line before each round, so that rounds of several processes meet.
 *
 * argv: state directory, own root, shared root, name, rounds
 */
import { hash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [dir = "", own = "", shared = "", name = "", rounds = "0"] = process.argv.slice(2);
const heard = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const storage = await openLocalStorage({ dir });
const store = createWorkspaceStore(storage);
for (let round = 1; round <= Number(rounds); round++) {
  console.log("ready");
  await heard.next();
  // Some of it is like what the others write at the same time, some is nobody else's.
  fs.writeFileSync(path.join(own, "common"), `round ${round}\n`.repeat(3000));
  fs.writeFileSync(path.join(own, "mine"), `${name} ${round}\n`);
  fs.writeFileSync(path.join(own, `made-${round}`), hash("sha256", `${name} ${round}`, "buffer"));
  for (const [which, root] of Object.entries({ own, shared })) {
    const { ref } = await store.capture({ root, pin: { owner: name, id: `${which}-${round}` } });
    console.log(JSON.stringify({ which, round, ref }));
  }
}
await storage.close();
process.exit(0);
