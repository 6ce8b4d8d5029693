/**
 * The API reference is complete: typedoc reads every entry that the package exports, finds a doc comment on each thing in
 * it, and meets no type that a user would need and cannot name.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Application, LogLevel, Logger } from "typedoc";
import type { ProjectReflection } from "typedoc";
import { beforeAll, describe, expect, test } from "vitest";
import { repository } from "./source-tree.js";

const manifest = JSON.parse(fs.readFileSync(path.join(repository, "package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
};
const options = JSON.parse(fs.readFileSync(path.join(repository, "typedoc.json"), "utf8")) as {
  readonly entryPoints: readonly string[];
  readonly intentionallyNotExported: readonly string[];
};

const entryFiles = Object.values(manifest.exports)
  .filter((target) => typeof target !== "string")
  .map((target) => target.default.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts"));

class Notes extends Logger {
  readonly said: string[] = [];
  override log(message: string, level: LogLevel): void {
    if (level >= LogLevel.Warn) this.said.push(message);
  }
}

/** What typedoc reads by the `typedoc.json` of a project, and what it has to say of it. */
async function documented(
  project: string,
): Promise<{ readonly reference: ProjectReflection; readonly said: readonly string[] }> {
  const application = await Application.bootstrap({ options: project });
  const notes = new Notes();
  application.logger = notes;
  const reference = await application.convert();
  if (reference === undefined) throw new Error(`typedoc reads none of it: ${notes.said.join("\n")}`);
  application.validate(reference);
  return { reference, said: notes.said };
}

describe("the API reference", () => {
  let own: Awaited<ReturnType<typeof documented>>;
  beforeAll(async () => {
    own = await documented(repository);
  });

  test("has every entry of the package, and no other", () => {
    expect([...options.entryPoints].sort()).toEqual([...entryFiles].sort());
  });

  test("says something of everything it has, and names nothing that is not in it", () => {
    expect(own.said).toEqual([]);
    const names = Object.values(own.reference.reflections).map(({ name }) => name);
    for (const name of ["openWorkspace", "defineRig", "fileTools", "openLocalStorage", "ledgerConformance"]) {
      expect(names).toContain(name);
    }
  });

  test("leaves out on purpose only what is there to be left out", () => {
    const sources = fs
      .readdirSync(path.join(repository, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => fs.readFileSync(path.join(repository, "src", name), "utf8"))
      .join("\n");
    const gone = options.intentionallyNotExported.filter(
      (name) => !new RegExp(`\\b(?:type|interface) ${name}\\b`).test(sources),
    );
    expect(gone).toEqual([]);
  });
});

test("a thing without a comment, and a type that cannot be named, are noticed", async () => {
  const dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"));
  try {
    const text = [
      "interface Hidden { a: 1 }",
      "export const bare = 1;",
      "/** Said. */",
      "export const said = (a: Hidden): Hidden => a;",
    ];
    fs.writeFileSync(path.join(dir, "package.json"), JSON.stringify({ name: "some-project", version: "1.0.0" }));
    fs.writeFileSync(path.join(dir, "entry.ts"), text.join("\n"));
    fs.writeFileSync(path.join(dir, "tsconfig.json"), JSON.stringify({ files: ["entry.ts"] }));
    const settings = { ...options, entryPoints: ["entry.ts"], tsconfig: "tsconfig.json" };
    fs.writeFileSync(path.join(dir, "typedoc.json"), JSON.stringify(settings));
    const { said } = await documented(dir);
    expect(said.filter((each) => each.includes("bare"))).toHaveLength(1);
    expect(said.filter((each) => each.includes("Hidden"))).toHaveLength(1);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
});
