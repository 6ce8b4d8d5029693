/**
 * A session's tools in a process of their own, over a root it shares: appends lines to one file, each composed from what it
 * read, and counts how often it was refused. Arguments: root, state directory, name, number of lines.
 */
import { LoopTools } from "../../src/builtin-tools/testing/tools-on-disk.js";
import { fileTools } from "../../src/builtin-tools/index.js";
import { isLooprigError, mintLoopId, mintSessionId } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { bindTools } from "../../src/tool/index.js";
import {
  canonicalPath,
  createCommitSection,
  createCoordinator,
  createObservations,
} from "../../src/workspace/index.js";

const [directory = "", dir = "", name = "", count = "0"] = process.argv.slice(2);
const root = canonicalPath(directory);
const storage = await openLocalStorage({ dir });
const sessionId = mintSessionId();
const loop = new LoopTools(
  await bindTools(fileTools(), {
    ...{ sessionId, loopId: mintLoopId() },
    workspace: {
      ...{ root, coordinator: createCoordinator({ root }), observations: createObservations({ root }) },
      commits: createCommitSection({ leaser: storage.leaser, root, sessionId }),
    },
  }),
);
let refused = 0;
console.log("ready");
for (let round = 0; round < Number(count);) {
  const seen = await loop.ok("Read", { file_path: "log", limit: 100_000 });
  const content = `${seen.replaceAll(/^ *\d+\t/gm, "")}\n${name} ${round}\n`;
  try {
    if ((await loop.call("Write", { file_path: "log", content })).isError) refused++;
    else round++;
  } catch (error) {
    if (!isLooprigError(error, "file.stale")) throw error;
    refused++;
  }
}
console.log(JSON.stringify({ refused }));
await storage.close();
