/**
 * Which way the imports point. Features are ordered from core to edge; each may import those before it, through their
 * entry, and nothing else. What is drawn in ARCHITECTURE.md is checked here.
 */
import { describe, expect, test } from "vitest";
import { importsOf, isTestSide, sourceFiles } from "./source-tree.js";
import type { SourceFile } from "./source-tree.js";

/** Features of one row know nothing of each other. */
const rows: readonly (readonly string[])[] = [
  ["core"],
  ["storage"],
  ["session-store", "workspace-store"],
  ["workspace"],
  ["tool"],
  ["loop", "builtin-tools"],
  ["session"],
  ["rig"],
  ["cli", "http", "mcp"],
];
const rowOf = new Map(rows.flatMap((features, row) => features.map((feature) => [feature, row] as const)));

/** Storage drivers implement `storage`, stand beside the order, and are chosen only where a program is put together. */
const drivers = new Set(["storage-local", "storage-postgres", "storage-s3"]);
/** Packages that only a driver may load. */
const driverPackages = ["libsql", "node:sqlite", "pg", "@aws-sdk/client-s3"];
/** The one arrow from the library to a driver: `openWorkspace` without `storage` loads the local one on demand. */
const defaultStorage = { from: "src/index.ts", to: "src/storage-local/index.ts" };

/** "core" of `src/core/ids.ts`; undefined for the entries directly below `src/`. */
const featureOf = (file: string): string | undefined => /^src\/([^/]+)\//.exec(file)?.[1];

function wrongArrows(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ target, kind, line }) => {
      const reason = target.startsWith("src/")
        ? wrongFile(file.path, target, kind)
        : target.startsWith("tests/") && isTestSide(file.path)
          ? undefined
          : wrongPackage(file.path, target);
      return reason === undefined ? [] : [`${file.path}:${line} imports ${target}: ${reason}`];
    }),
  );
}

function wrongFile(from: string, to: string, kind: "static" | "type" | "dynamic"): string | undefined {
  const ours = featureOf(from);
  const theirs = featureOf(to);
  if (theirs === undefined) return "an entry of the package is for its users";
  if (ours === theirs) {
    return to === `src/${theirs}/index.ts` ? "inside a feature the file itself is imported" : undefined;
  }
  const throughEntry = to === `src/${theirs}/index.ts`;
  const forTests = to === `src/${theirs}/internal.ts` || to.startsWith(`src/${theirs}/testing/`);
  if (!throughEntry && !(forTests && isTestSide(from))) return "another feature is imported through its index.ts";
  if (drivers.has(theirs)) {
    if (isTestSide(from) || ours === "cli") return undefined;
    if (from === defaultStorage.from && to === defaultStorage.to && kind === "dynamic") return undefined;
    return "a driver is imported only where a program is put together";
  }
  const theirRow = rowOf.get(theirs);
  if (theirRow === undefined) return `"${theirs}" has no place in the order of features`;
  // Entries put everything together.
  if (ours === undefined) return undefined;
  const ourRow = drivers.has(ours) ? rowOf.get("session-store") : rowOf.get(ours);
  if (ourRow === undefined) return `"${ours}" has no place in the order of features`;
  if (drivers.has(ours) && theirs !== "core" && theirs !== "storage") return "a driver knows the contract and core";
  return theirRow < ourRow ? undefined : "features import only those nearer to core";
}

function wrongPackage(from: string, target: string): string | undefined {
  const ours = featureOf(from);
  if (driverPackages.includes(target) && !(ours !== undefined && drivers.has(ours))) {
    return "only a storage driver loads it";
  }
  if (ours === "core" && !isTestSide(from) && !target.startsWith("node:")) return "core needs nothing but Node";
  if (target.startsWith("tests/")) return "the product does not import its tests";
  return undefined;
}

/** What importing `entry` loads, as far as it is ours, and the packages it needs. */
function loadedBy(entry: string, files: readonly SourceFile[]): ReadonlySet<string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const loaded = new Set<string>();
  const next = [entry];
  for (let file = next.pop(); file !== undefined; file = next.pop()) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    const source = byPath.get(file);
    if (source === undefined) continue;
    next.push(
      ...importsOf(source)
        .filter(({ kind }) => kind === "static")
        .map(({ target }) => target),
    );
  }
  return loaded;
}

describe("imports", () => {
  test("point from edge to core, through the entries of features", () => {
    expect(wrongArrows(sourceFiles())).toEqual([]);
  });

  test("lead from every feature to files that exist", () => {
    const files = sourceFiles();
    const paths = new Set(files.map(({ path }) => path));
    const dangling = files.flatMap((file) =>
      importsOf(file)
        .filter(({ target }) => target.startsWith("src/") && !paths.has(target))
        .map(({ target, line }) => `${file.path}:${line} imports ${target}`),
    );
    expect(dangling).toEqual([]);
  });

  test.each(["src/index.ts", "src/storage/index.ts"])("of %s load no storage driver", (entry) => {
    const loaded = [...loadedBy(entry, sourceFiles())];
    expect(loaded.length).toBeGreaterThan(5);
    expect(loaded.filter((file) => drivers.has(featureOf(file) ?? "") || driverPackages.includes(file))).toEqual([]);
    expect(loaded).not.toContain("vitest");
  });

  test("that are wrong are found", () => {
    const forged = (path: string, text: string): readonly string[] => wrongArrows([{ path, text }]);
    const wrong: readonly (readonly [string, string, string])[] = [
      ["src/core/a.ts", 'import { x } from "../storage/index.js";', "nearer to core"],
      ["src/core/a.ts", 'import zod from "zod";', "nothing but Node"],
      ["src/session-store/a.ts", 'import type { X } from "../workspace-store/index.js";', "nearer to core"],
      ["src/workspace/a.ts", 'export { x } from "../cli/index.js";', "nearer to core"],
      ["src/workspace/a.ts", 'import { x } from "../core/ids.js";', "through its index.ts"],
      ["src/workspace/a.ts", 'import { x } from "../storage/internal.js";', "through its index.ts"],
      ["src/workspace/a.ts", 'import { x } from "./index.js";', "the file itself"],
      ["src/workspace/sub/a.ts", 'import { x } from "../index.js";', "the file itself"],
      ["src/workspace/a.ts", 'import { x } from "../storage-local/index.js";', "put together"],
      ["src/workspace/a.ts", 'await import("../storage-local/index.js");', "put together"],
      ["src/index.ts", 'import { x } from "./storage-local/index.js";', "put together"],
      ["src/index.ts", 'export type { X } from "./storage-local/index.js";', "put together"],
      ["src/storage-local/a.ts", 'import { x } from "../session-store/index.js";', "knows the contract and core"],
      ["src/workspace/a.ts", 'import Database from "libsql";', "only a storage driver"],
      ["src/workspace/a.ts", 'import { x } from "../index.js";', "for its users"],
      ["src/workspace/a.ts", 'type X = import("../cli/index.js").X;', "nearer to core"],
      ["src/workspace/a.ts", 'import { x } from "../../tests/processes.js";', "does not import its tests"],
      ["src/workspace/a.ts", 'import { x } from "../attic/index.js";', "no place in the order"],
    ];
    for (const [path, text, reason] of wrong) {
      expect([path, text, forged(path, text)[0]]).toEqual([path, text, expect.stringContaining(reason)]);
    }
    const right: readonly (readonly [string, string])[] = [
      ["src/core/a.ts", 'import fs from "node:fs"; import { x } from "./ids.js";'],
      [
        "src/workspace/a.ts",
        'import { x } from "../workspace-store/index.js"; import type { Y } from "../core/index.js";',
      ],
      [
        "src/workspace/a.test.ts",
        'import { x } from "../storage-local/index.js"; import { y } from "../core/internal.js";',
      ],
      ["src/index.ts", 'await import("./storage-local/index.js");'],
      ["src/cli/main.ts", 'import { x } from "../storage-local/index.js";'],
      ["src/storage-local/a.ts", 'import { x } from "../storage/index.js"; import Database from "libsql";'],
      ["src/testing.ts", 'export { x } from "./storage/testing/index.js";'],
    ];
    for (const [path, text] of right) expect([path, text, forged(path, text)]).toEqual([path, text, []]);
  });
});
