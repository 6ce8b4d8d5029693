/** `Glob`: files whose names fit a pattern, newest first. */
import { displayName, joinPath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { jsonSchema, tool } from "../tool/index.js";
import type { Tool } from "../tool/index.js";
import { openDirectory } from "./list.js";
import type { LoopFiles } from "./loop-files.js";
import { ripgrepFiles, ripgrepGlob } from "./ripgrep.js";

const pathsMax = 1_000;

export interface GlobInput {
  readonly pattern: string;
  readonly path?: string;
}

export const glob = (files: LoopFiles): Tool =>
  tool({
    description: `Finds files of the workspace by name, last changed first: "*.ts" at any depth, "src/**/*.ts" below \`path\`. Leaves out what .gitignore names and .git; to look into an ignored directory give it as \`path\`. At most ${pathsMax} paths.`,
    inputSchema: jsonSchema<GlobInput>({
      type: "object",
      properties: {
        pattern: { type: "string", minLength: 1, description: "A glob: * ? [ab] {a,b} and ** for any directories" },
        path: { type: "string", description: "The directory to search in. Default the root of the workspace" },
      },
      required: ["pattern"],
      additionalProperties: false,
    }),
    execute: async ({ pattern, path: given = "." }, { signal }) => {
      const base = files.locate(given);
      using top = files.open();
      using directory = openDirectory(top, base);
      const [visible, fitting] = await Promise.all([
        ripgrepFiles(directory, { signal }),
        ripgrepGlob(directory, pattern, { signal }),
      ]);
      const cut = visible.cut ?? fitting.cut;
      const paths = visible.names
        .filter((name) => fitting.names.has(name))
        .map((name) => displayName(below(base, name)));
      if (paths.length === 0) return `[no file here fits ${JSON.stringify(pattern)}]`;
      const lines = paths.slice(0, pathsMax);
      if (paths.length > lines.length || cut !== undefined) {
        const of = cut === undefined ? `${paths.length - lines.length} of ${paths.length} paths are` : "more paths are";
        lines.push(`[${of} left out; use a narrower pattern or path]`);
      }
      return lines.join("\n");
    },
  });

/** A name that ripgrep printed, as a path below the root. */
export const below = (base: WorkspacePath, name: string): WorkspacePath =>
  joinPath(base, name.startsWith("./") ? name.slice(2) : name);
