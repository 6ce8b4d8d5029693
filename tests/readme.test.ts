/**
 * The README can be followed literally: its tour is run in order, in one home directory, by the command line of the present
 * sources, and its TypeScript against the present library; what it shows is compared with what comes out. `sh` blocks
 * (installing) are not run here.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { codeBlocks } from "./markdown.js";
import { Reader } from "./reader.js";
import { repository } from "./source-tree.js";

const readme = fs.readFileSync(path.join(repository, "README.md"), "utf8");
const blocks = codeBlocks(readme);

let reader: Reader;
beforeAll(() => {
  reader = new Reader();
});
afterAll(() => reader.close());

it("the tour shows what really happens, command by command", () => {
  const { shown, happened } = reader.follow(readme);
  expect(shown.length).toBeGreaterThan(15);
  expect(happened).toEqual(shown);
});

it("has every command of the command line in its tour", () => {
  const tour = blocks.filter(({ language }) => language === "console").map(({ text }) => text);
  const used = new Set([...tour.join("\n").matchAll(/looprig ([a-z]+)/g)].map(([, name]) => name));
  const help = execFileSync(path.join(reader.bin, "looprig"), ["--help"], {
    ...{ env: reader.environment, encoding: "utf8" },
  });
  const commands = [...help.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
  expect(commands.length).toBeGreaterThan(5);
  expect(commands.filter((name) => !used.has(name))).toEqual([]);
});

it("installs and tests by scripts that exist, the ones CI runs", () => {
  const { scripts } = JSON.parse(fs.readFileSync(path.join(repository, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
  const named = [...shell.join("\n").matchAll(/npm (?:run )?(start|test|bench)\b/g)].map(([, name]) => name ?? "");
  expect(named).toContain("start");
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  expect(shell.some((text) => text.startsWith("npm ci && npm test"))).toBe(true);
  const ci = fs.readFileSync(path.join(repository, ".ci", "run"), "utf8");
  expect(ci.split("\n").filter((line) => line.startsWith("npm "))).toEqual(["npm ci", "npm test"]);
});
