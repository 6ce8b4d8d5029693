/** A process that runs a shell command which does not end by itself; a test kills it. */
import { mintCallId, mintLoopId, mintSessionId } from "../../core/index.js";
import { bindTools } from "../../tool/index.js";
import { canonicalPath, createCoordinator } from "../../workspace/index.js";
import { bash } from "../bash.js";

const [directory = "", pidFile = ""] = process.argv.slice(2);
const root = canonicalPath(directory);
const tools = await bindTools(bash({ needsApproval: false }), {
  ...{ sessionId: mintSessionId(), loopId: mintLoopId() },
  workspace: { root, coordinator: createCoordinator({ root }) },
});
const command = `echo $$ > "${pidFile}"; while :; do sleep 1000; done`;
await tools.get("Bash")?.execute({ command }, { signal: new AbortController().signal, callId: mintCallId() });
