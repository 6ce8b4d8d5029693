/** Models of providers' packages: found beside looprig as it is installed, and nowhere else. */
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtFile } from "../build.js";
import { TerminalHome } from "./terminal-home.js";
import type { Ran } from "./terminal-home.js";

const here = new TerminalHome();
const modules = path.join(here.home, "prefix", "lib", "node_modules");
const looprig = path.join(modules, "looprig");
const main = path.join(looprig, "src", "cli", "main.js");

/** As npm would install it for all: looprig and its dependencies side by side. Those that others need too are links. */
beforeAll(() => {
  const built = path.resolve(builtFile("src/cli/main.ts"), "../../..");
  fs.cpSync(built, looprig, { recursive: true });
  const installed = path.resolve(built, "../../..");
  for (const name of fs.readdirSync(installed)) {
    if (name.startsWith(".") || name === "@ai-sdk") continue;
    fs.symlinkSync(path.join(installed, name), path.join(modules, name));
  }
});
afterAll(() => here[Symbol.dispose]());

function provider(folder: string, name: string, source: string): void {
  const dir = path.join(folder, "@ai-sdk", name);
  fs.mkdirSync(dir, { recursive: true });
  const manifest = { name: `@ai-sdk/${name}`, type: "module", exports: { ".": { import: "./index.js" } } };
  fs.writeFileSync(path.join(dir, "package.json"), JSON.stringify(manifest));
  fs.writeFileSync(path.join(dir, "index.js"), source);
}

const models = (specificationVersion: string, says: string): string => `
  const parts = (modelId) => [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: ${JSON.stringify(says)} + modelId },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: { inputTokens: { total: 7 }, outputTokens: { total: 3 } } },
  ];
  const model = (modelId) => ({
    specificationVersion: ${JSON.stringify(specificationVersion)}, provider: "bird", modelId,
    doStream: async () => ({ stream: ReadableStream.from(parts(modelId)) }),
  });
`;

const run = (model: string): Promise<Ran> => here.run(["run", "sing", "--model", model, "--json"], { main });
const failure = (ran: Ran): unknown => JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? "");

describe("a provider installed beside looprig", () => {
  test("is called by its name in camel case, whatever lies in the workspace", async () => {
    provider(modules, "song-bird", `${models("v4", "I am ")} export const songBird = model;`);
    provider(path.join(here.root, "node_modules"), "song-bird", 'throw new Error("of the workspace");');
    const ran = await here.run(["run", "sing", "--model", "song-bird/blue/1"], { main });
    expect(ran).toMatchObject({ status: 0, stdout: "I am blue/1\n" });
    expect(ran.stderr).toContain("t1 done   7 in, 3 out   changed nothing\n");
  });

  test("or by the last part of its name", async () => {
    provider(modules, "amazing-rock", `${models("v3", "As ")} export const rock = model;`);
    const ran = await here.run(["run", "sing", "--model", "amazing-rock/x"], { main });
    expect(ran).toMatchObject({ status: 0, stdout: "As x\n" });
  });

  test.each([
    ["no-song", "export const other = 1;", "model.provider_unusable", "it exports no noSong"],
    ["no-voice", 'throw new Error("no\\u001b[2J voice");', "model.provider_unusable", "no\ufffd[2J voice"],
    ["no-key", 'export const noKey = () => { throw new Error("no key"); };', "model.provider_unusable", "no key"],
    ["no-dependency", 'import "not-installed-anywhere";', "model.provider_unusable", "not-installed-anywhere"],
    ["old-song", `${models("v2", "")} export const oldSong = model;`, "model.unsupported_specification", '"v2"'],
  ])("that is %s is told as what it is", async (name, source, code, words) => {
    provider(modules, name, source);
    const ran = await run(`${name}/x`);
    expect(ran.status).toBe(1);
    expect(failure(ran)).toMatchObject({ code, message: expect.stringContaining(words) as unknown });
  });

  test("in the workspace alone counts as not installed, and the line that installs it names the prefix", async () => {
    provider(
      path.join(here.root, "node_modules"),
      "mock-bird",
      `${models("v4", "Mock")} export const mockBird = model;`,
    );
    expect(failure(await run("mock-bird/x"))).toMatchObject({
      code: "model.provider_missing",
      hint: `npm install --global --prefix ${path.join(here.home, "prefix")} @ai-sdk/mock-bird`,
    });
  });

  test("the OpenAI-compatible one too, where optional dependencies were left out", async () => {
    const ran = await here.run(["run", "x", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--json"], { main });
    expect(failure(ran)).toMatchObject({
      code: "model.provider_missing",
      details: { package: "@ai-sdk/openai-compatible" },
    });
  });
});
