/**
 * Becomes another user and captures a root into a state directory; prints one line of JSON that says what was found.
 *
 * argv: root, state directory, uid
 */
import process from "node:process";
import { isLooprigError } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [root = "", dir = "", uid = ""] = process.argv.slice(2);
process.setgroups?.([]);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));

const storage = await openLocalStorage({ dir });
const store = createWorkspaceStore(storage);
const { completeness, files, omitted } = await store.capture({ root });
const strict = await store.capture({ root, strict: true }).then(
  () => ["captured"],
  (error: unknown) => {
    if (!isLooprigError(error, "capture.incomplete")) throw error;
    return [error.code, ...error.details.paths.map(({ path }) => path)];
  },
);
console.log(JSON.stringify({ completeness, files, omitted, strict }));
await storage.close();
