/**
 * Captures a root into a state directory, and prints one line of JSON: the most memory this process had, and what it read.
 *
 * argv: root, state directory
 */
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [root = "", dir = ""] = process.argv.slice(2);
const storage = await openLocalStorage({ dir });
const { bytesRead } = await createWorkspaceStore(storage).capture({ root });
console.log(JSON.stringify({ peakMiB: process.resourceUsage().maxRSS / 1024, bytesRead }));
await storage.close();
process.exit(0);
