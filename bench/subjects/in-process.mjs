/**
 * looprig as a library in a process that goes on: an agent, a server. Two layers, each in a process of its own so that memory
 * and waiting of the event loop are its own:
 *
 *   engine      the workspace store alone: capture, pin, materialize
 *   workspace   what a session stands on: leases, journal, attribution, undo
 */
import { fork } from "node:child_process";
import { reserve } from "./command.mjs";

const host = new URL("in-process-host.mjs", import.meta.url);

const layer = (key, title, methods) => (build) => ({
  key,
  title,
  version: () => "this build",
  open: (place) => open(key, { ...place, ...build }, methods),
});

export const engineOf = layer("engine", "looprig engine, in process", ["first", "capture", "materialize"]);
export const workspaceOf = layer("workspace", "looprig workspace, in process", [
  ...["first", "capture", "turn", "undo", "restore", "materialize"],
]);

async function open(key, { tree, store, dist }, methods) {
  const child = fork(host, [key, dist, tree, store], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const ask = (method, ...args) =>
    new Promise((resolve, reject) => {
      const onExit = (code) => reject(new Error(`${key}: the process ended with ${code} during ${method}`));
      child.once("exit", onExit);
      child.once("message", (answer) => {
        child.off("exit", onExit);
        if (answer.error === undefined) resolve(answer.result);
        else reject(new Error(`${key}: ${method} failed: ${answer.error}`));
      });
      child.send({ method, args });
    });
  await ask("open");
  return {
    ...Object.fromEntries(methods.map((method) => [method, (...args) => ask(method, ...args)])),
    apart: [reserve],
    /** Lets go of the store and takes it again, so that its files are at rest when they are measured. */
    rest: () => ask("rest"),
    close: async () => {
      await ask("close");
      child.disconnect();
      await ended;
    },
  };
}
