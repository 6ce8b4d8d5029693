/**
 * Captures a root into a state directory, and prints one line of JSON: the most memory this process had, and what it read.
 *
 * argv: root, state directory
 */
import fs from "node:fs";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [root = "", dir = ""] = process.argv.slice(2);
const storage = await openLocalStorage({ dir });
const { bytesRead } = await createWorkspaceStore(storage).capture({ root });
// Not `maxRSS`: on Linux that starts at what the process that started this one had.
const peakKiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync("/proc/self/status", "utf8"))?.[1]);
console.log(JSON.stringify({ peakMiB: peakKiB / 1024, bytesRead }));
await storage.close();
process.exit(0);
