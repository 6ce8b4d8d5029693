/** The command that installs a package where looprig finds it: beside looprig itself, wherever that is. Pure. */
import path from "node:path";
import { shellWord } from "./spelling.js";

/** `packageDir`: the directory of looprig's own manifest, real path. */
export function installLine(packageDir: string, name: string): string {
  const modules = path.dirname(packageDir);
  // A clone: nothing is saved, since the manifest there is looprig's own.
  if (path.basename(modules) !== "node_modules") return npm("install --no-save --prefix", packageDir, name);
  const above = path.dirname(modules);
  // Where npm puts what is global: `<prefix>/lib/node_modules`.
  if (path.basename(above) === "lib") return npm("install --global --prefix", path.dirname(above), name);
  return npm("install --prefix", above, name);
}

const npm = (verb: string, prefix: string, name: string): string =>
  `npm ${verb} ${shellWord(prefix)} ${shellWord(name)}`;
