/**
 * Changes a directory without pause, each path between two states, until its standard input ends. Prints a line once it is at
 * it. A capture meanwhile may find either state of each, and nothing that was never there.
 *
 * argv: root, a directory outside it
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const [root = "", outside = ""] = process.argv.slice(2);
const at = (name: string): string => path.join(root, name);
const aside = path.join(path.dirname(root), "aside");
fs.mkdirSync(aside);
const kept = (name: string): string => path.join(aside, name);

execFileSync("mkfifo", [kept("fifo")]);
fs.symlinkSync(outside, kept("way-out"));
fs.symlinkSync(path.join(outside, "secret"), kept("way-to-file"));

let rounds = 0;
function step(): void {
  for (let i = 0; i < 20; i++) {
    rounds++;
    // A file, and a pipe without anybody at its other end.
    fs.renameSync(at("victim"), kept("file"));
    fs.renameSync(kept("fifo"), at("victim"));
    fs.renameSync(at("victim"), kept("fifo"));
    fs.renameSync(kept("file"), at("victim"));
    // A directory, and a link out of the root in its place.
    fs.renameSync(at("dir"), kept("dir"));
    fs.renameSync(kept("way-out"), at("dir"));
    fs.renameSync(at("dir"), kept("way-out"));
    fs.renameSync(kept("dir"), at("dir"));
    // A file, and a link to one outside.
    fs.renameSync(at("dir/secret"), kept("secret"));
    fs.renameSync(kept("way-to-file"), at("dir/secret"));
    fs.renameSync(at("dir/secret"), kept("way-to-file"));
    fs.renameSync(kept("secret"), at("dir/secret"));
    // A tree that comes and goes.
    fs.mkdirSync(at("brief/below"), { recursive: true });
    fs.writeFileSync(at("brief/below/f"), "brief");
    fs.rmSync(at("brief"), { recursive: true });
    // A file under two names in turn.
    fs.renameSync(at("here"), at("there"));
    fs.renameSync(at("there"), at("here"));
  }
  if (rounds === 20) console.log("at it");
  setImmediate(step);
}
process.stdin.on("end", () => process.exit(0)).resume();
step();
