/**
 * Writes a small store as `npm run build` makes it, as one file of JSON: every blob, and what the trees in it hold. The files
 * in `src/workspace-store/fixtures/` were made by it, each by the release whose format it is named for; they are never made
 * again, since they stand for stores that people have.
 *
 *     npm run build && node scripts/store-fixture.mjs > store.json
 */
import { hash, randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createWorkspaceStore } from "../dist/index.js";
import { createMemoryStorage } from "../dist/storage/index.js";

const base = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-fixture-"));
const root = path.join(base, "root");
const at = (name) => Buffer.concat([Buffer.from(`${root}/`), Buffer.isBuffer(name) ? name : Buffer.from(name)]);
fs.mkdirSync(at("src/deep"), { recursive: true });
fs.writeFileSync(at("README"), "a store as it was written\n");
fs.writeFileSync(at("src/empty"), "");
fs.writeFileSync(at("src/run.sh"), "#!/bin/sh\necho run\n");
fs.writeFileSync(at("src/deep/large"), Buffer.alloc(1_300_000, "more than one piece, "));
fs.writeFileSync(at(Buffer.from([0x6e, 0xff, 0x6d])), "a name that is not UTF-8\n");
/** Text that does not shrink to nothing, so that an edit of it is worth storing as a difference. */
const notes = Array.from({ length: 60 }, (_, i) => `${i}: ${hash("sha256", String(i))}\n`).join("");
fs.writeFileSync(at("src/notes"), notes);
fs.symlinkSync("src/run.sh", at("link"));
fs.writeFileSync(at("build"), "left out by a rule");
fs.chmodSync(at("src/run.sh"), 0o755);
for (const name of ["README", "src/notes", "src/empty", "src/deep/large", Buffer.from([0x6e, 0xff, 0x6d])])
  fs.chmodSync(at(name), 0o644);
for (const name of ["src", "src/deep"]) fs.chmodSync(at(name), 0o755);

const storage = createMemoryStorage();
const store = createWorkspaceStore(storage, { spoolDir: path.join(base, "spool") });
const rules = { exclude: ["/build"] };
const pins = [];
async function capture(owner, id) {
  const { ref } = await store.capture({ root, rules, pin: { owner, id } });
  pins.push({ owner, id, ref, files: listing() });
}
/** Path in hex, then kind and what it holds. */
function listing() {
  const found = [];
  const visit = (dir, below) => {
    for (const name of fs.readdirSync(dir, { encoding: "buffer" }).sort(Buffer.compare)) {
      const full = Buffer.concat([dir, Buffer.from("/"), name]);
      const shown = below + name.toString("hex");
      const stats = fs.lstatSync(full);
      if (shown === Buffer.from("build").toString("hex")) continue;
      if (stats.isDirectory()) visit(full, `${shown}/`);
      else if (stats.isSymbolicLink()) found.push([shown, "link", fs.readlinkSync(full)]);
      else found.push([shown, (stats.mode & 0o777).toString(8), sha256(fs.readFileSync(full))]);
    }
  };
  visit(Buffer.from(root), "");
  return found;
}
const sha256 = (bytes) => hash("sha256", bytes);

await capture("session-a", "c1");
fs.writeFileSync(at("README"), "a store as it was written, changed\n");
fs.writeFileSync(at("src/notes"), `${notes}one more line\n`);
await capture("session-b", "c2");
if (store.collect !== undefined) {
  // Garbage that a collection has condemned, which no later one may free before its time.
  fs.writeFileSync(at("garbage"), "nobody keeps this ".repeat(100));
  await store.capture({ root, rules });
  await store.collect({ claim: { sessionId: randomUUID(), command: "fixture" }, fill: 1 });
}
const blobs = {};
for await (const { key } of storage.blobs.list(""))
  blobs[key] = Buffer.from(await storage.blobs.get(key)).toString("base64");
process.stdout.write(`${JSON.stringify({ pins, blobs }, null, 1)}\n`);
fs.rmSync(base, { recursive: true });
