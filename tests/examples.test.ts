/**
 * Each example runs as a user would run it, against the package as it is now, prints what its README shows, and leaves
 * nothing behind. The tour, `careless-agent`, checks itself and has a test of its own.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { codeBlocks, localLinks } from "./markdown.js";
import { Reader } from "./reader.js";
import { repository } from "./source-tree.js";

const folder = path.join(repository, "examples");
const examples = fs
  .readdirSync(folder)
  .filter((name) => name !== "careless-agent" && fs.existsSync(path.join(folder, name, "main.mjs")));

let reader: Reader;
beforeAll(() => {
  reader = new Reader();
  reader.install("zod");
});
afterAll(() => reader.close());

test.each(examples)("%s prints what its page shows, and leaves nothing behind", (name) => {
  fs.cpSync(path.join(folder, name), path.join(reader.home, name), { recursive: true });
  const temporary = path.join(reader.home, `${name}-temporary`);
  fs.mkdirSync(temporary);
  const { stdout, stderr, status } = spawnSync(process.execPath, [path.join(name, "main.mjs")], {
    ...{ cwd: reader.home, env: { ...reader.environment, TMPDIR: temporary }, encoding: "utf8" },
  });
  const page = fs.readFileSync(path.join(folder, name, "README.md"), "utf8");
  const shown = codeBlocks(page).find(({ language }) => language === "text")?.text;
  expect({ stdout, stderr, status }).toEqual({ stdout: shown, stderr: "", status: 0 });
  expect(fs.readdirSync(temporary)).toEqual([]);
});

test("the page of examples has each of them", () => {
  expect(examples.length).toBeGreaterThan(3);
  const links = localLinks(fs.readFileSync(path.join(folder, "README.md"), "utf8"));
  expect(examples.filter((name) => !links.includes(`${name}/README.md`))).toEqual([]);
});
