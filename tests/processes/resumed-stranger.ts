/**
 * Goes on with a session in whose root a stranger stands, and is killed by SIGKILL right before an effect on the file system:
 * the one with a number (0: none), or so many after the first one that fits a pattern. Prints the number of effects when it
 * lives to the end.
 *
 * argv: directory of the playground, state directory, session, number, pattern
 */
import path from "node:path";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { omitting, rigOn } from "../session/scenes.js";

const [dir = "", state = "", id = "", number = "0", pattern = ""] = process.argv.slice(2);
const wanted = new RegExp(pattern);

let effects = 0;
let last = pattern === "" ? Number(number) : Infinity;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args, effect }) => {
  if (!effect) return;
  effects++;
  if (last === Infinity && wanted.test(`${name} ${path.basename(String(args[0]))}`)) last = effects + Number(number);
  if (effects === last) process.kill(process.pid, "SIGKILL");
});
const storage = await openLocalStorage({ dir: state, fileSystem });
const place = { dir, root: "", storage: () => Promise.resolve(storage) };
const rig = await rigOn(place, { placement: "session", capture: omitting, world: { fileSystem } });
await (await rig.resumeSession(id)).close();
await storage.close();
console.log(effects);
