/**
 * The build that is measured: a copy, so that nobody who builds meanwhile changes it, and two builds can be measured in turn.
 * A build is { dist }.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const repository = new URL("..", import.meta.url).pathname;

export function makeBuild() {
  const { status } = spawnSync("npm", ["run", "--silent", "build"], { cwd: repository, stdio: "inherit" });
  if (status !== 0) throw new Error("the build failed, so there is nothing to measure");
}

/** Copies what was built in `checkout` to a place below `place`, and lends it the packages it stands on. */
export function takeBuild(place, { checkout = repository, name = "build" } = {}) {
  const own = path.join(place, name);
  fs.cpSync(path.join(checkout, "dist"), path.join(own, "dist"), { recursive: true });
  fs.copyFileSync(path.join(checkout, "package.json"), path.join(own, "package.json"));
  const packages = [checkout, repository].map((at) => path.join(at, "node_modules")).find((at) => fs.existsSync(at));
  fs.symlinkSync(path.resolve(packages), path.join(own, "node_modules"));
  return { dist: path.join(own, "dist") };
}
