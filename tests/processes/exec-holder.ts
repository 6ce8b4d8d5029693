/** Opens a root and runs a shell script in it. argv: root, state directory, script, "shared" or nothing */
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";

const [root = "", dir = "", script = "", placement] = process.argv.slice(2);

const storage = await openLocalStorage({ dir });
const workspace = await openWorkspace({
  root,
  storage,
  baseline: false,
  shared: placement === "shared",
  command: "holder",
});
const { exitCode } = await workspace.exec(["sh", "-c", script], { stdio: "ignore" });
await workspace.close();
await storage.close();
console.log(exitCode);
