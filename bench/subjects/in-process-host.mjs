/** The process that hosts one layer of the library: `in-process-host.mjs LAYER DIST TREE STORE`, asked over IPC, one thing at a time. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { measureInProcess } from "../measure/in-process.mjs";

const [layer, dist, tree, store] = process.argv.slice(2);
const { openLocalStorage } = await import(pathToFileURL(path.join(dist, "storage-local", "index.js")));
const { createWorkspaceStore, openWorkspace } = await import(pathToFileURL(path.join(dist, "index.js")));

const layers = { engine: hostEngine, workspace: hostWorkspace };
const methods = layers[layer]();

// Whoever asks has gone: threads of the library must not keep this process alive.
process.on("disconnect", () => process.exit());
process.on("message", async ({ method, args }) => {
  try {
    process.send({ result: await methods[method](...args) });
  } catch (error) {
    process.send({ error: error instanceof Error ? error.stack : String(error) });
  }
});

function hostEngine() {
  let storage;
  let snapshots;
  let newest;
  const open = async () => {
    storage = await openLocalStorage({ dir: store });
    snapshots = createWorkspaceStore(storage);
  };
  const capture = () =>
    measureInProcess(async () => {
      newest = await snapshots.capture({ root: tree, pin: { owner: "bench", id: "captures" } });
      const { files, bytesRead, bytesStored } = newest;
      return { files, bytesRead, bytesStored };
    });
  return {
    open,
    first: capture,
    capture,
    materialize: (dest) =>
      measureInProcess(async () => {
        const { entries, bytes } = await snapshots.materialize(await snapshots.open(newest.ref), dest);
        return { entries, bytes };
      }),
    rest: async () => {
      await storage.close();
      await open();
    },
    close: () => storage.close(),
  };
}

function hostWorkspace() {
  let storage;
  let workspace;
  let newest;
  const open = async () => {
    storage = await openLocalStorage({ dir: store });
  };
  const close = async () => {
    await workspace?.close();
    await storage.close();
  };
  const takeRoot = async (baseline) => void (workspace = await openWorkspace({ root: tree, storage, baseline }));
  return {
    open,
    /** Opening a workspace takes its first capture. */
    first: () => measureInProcess(() => takeRoot(true)),
    capture: () => measureInProcess(async () => void (newest = (await workspace.checkpoint()).ref)),
    turn: async (argv) => void (await workspace.exec(argv, { stdio: "ignore", everyMs: 0 })),
    undo: () =>
      measureInProcess(async () => {
        const { result } = await workspace.undo();
        if (result !== "done") throw new Error(`undo ended with "${result}"`);
      }),
    restore: () =>
      measureInProcess(async () => {
        const { result } = await workspace.restore(newest);
        if (result !== "done") throw new Error(`restore ended with "${result}"`);
      }),
    materialize: (dest) => measureInProcess(async () => void (await workspace.materialize("last", dest))),
    rest: async () => {
      await close();
      await open();
      await takeRoot(false);
    },
    close,
  };
}
