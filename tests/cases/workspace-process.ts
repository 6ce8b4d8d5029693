/**
 * One session in a process of its own. Its argument is a `Setup` as JSON; it opens the root, then does what it is told line
 * by line (`Order` as JSON) and answers each line, and the opening, with one line (`Answer` as JSON). Before the answer to an
 * order with `stopAt` it prints "stopped" and stops itself (SIGSTOP) right at that call: what is then killed is killed there.
 */
import { createInterface } from "node:readline";
import fs from "node:fs";
import { interceptFileSystem, isLooprigError, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem, FileSystemCall } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { RedoOptions, RestoreOptions, UndoOptions } from "../../src/workspace/index.js";

export interface Setup {
  readonly root: string;
  readonly stateDir: string;
  readonly shared?: boolean;
  readonly command?: string;
}
/** A call on one of the two seams: of the workspace (reading the tree) or of the storage (writing packs). */
export interface StopAt {
  readonly seam: "workspace" | "storage";
  readonly call: FileSystemCall["name"];
}
export type Order = { readonly stopAt?: StopAt } & (
  | { readonly do: "checkpoint" }
  | { readonly do: "exec"; readonly script: string }
  | ({ readonly do: "undo" } & UndoOptions)
  | ({ readonly do: "redo" } & RedoOptions)
  | ({ readonly do: "restore"; readonly ref: string } & RestoreOptions)
  | { readonly do: "close" }
);
export type Answer =
  | { readonly ok: Readonly<Record<string, unknown>> }
  | { readonly error: { readonly code: string; readonly message: string; readonly details: unknown } };

const setup = JSON.parse(process.argv[2] ?? "") as Setup;
let stopAt: StopAt | undefined;

const seam = (name: StopAt["seam"]): FileSystem =>
  interceptFileSystem(nodeFileSystem, (call) => {
    if (stopAt?.seam !== name || stopAt.call !== call.name) return;
    stopAt = undefined;
    // Written synchronously: nothing after this line runs before somebody says SIGCONT.
    fs.writeSync(1, "stopped\n");
    process.kill(process.pid, "SIGSTOP");
  });

const answer = (value: Answer): void => void fs.writeSync(1, `${JSON.stringify(value)}\n`);

async function attempt(work: () => Promise<object>): Promise<void> {
  try {
    answer({ ok: { ...(await work()) } });
  } catch (error) {
    if (!isLooprigError(error)) throw error;
    const { code, message, details } = error;
    answer({ error: { code, message, details } });
  }
}

const storage = await openLocalStorage({ dir: setup.stateDir, fileSystem: seam("storage") });
let workspace: Awaited<ReturnType<typeof openWorkspace>> | undefined;
await attempt(async () => {
  const { root, shared, command = "test" } = setup;
  workspace = await openWorkspace(
    { root, storage, shared, command, baseline: false },
    { fileSystem: seam("workspace") },
  );
  return { sessionId: workspace.sessionId };
});
if (workspace === undefined) {
  await storage.close();
  process.exit(0);
}

const open = workspace;
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order;
  stopAt = order.stopAt;
  await attempt(async () => {
    switch (order.do) {
      case "checkpoint":
        return open.checkpoint();
      case "exec":
        return open.exec(["sh", "-c", order.script], { stdio: "ignore" });
      case "undo":
        return open.undo(order);
      case "redo":
        return open.redo(order);
      case "restore":
        return open.restore(order.ref, order);
      case "close":
        await open.close();
        await storage.close();
        return {};
      default:
        return order satisfies never;
    }
  });
  if (order.do === "close") process.exit(0);
}
