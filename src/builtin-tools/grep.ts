/** `Grep`: lines that fit a regular expression. */
import { baseName, displayName, errnoOf, nameFromBytes, parentOf } from "../core/index.js";
import type { Directory, WorkspacePath } from "../core/index.js";
import { jsonSchema, tool } from "../tool/index.js";
import type { Tool } from "../tool/index.js";
import { shownLine } from "./difference.js";
import { below } from "./glob.js";
import { openDirectory } from "./list.js";
import type { LoopFiles } from "./loop-files.js";
import { openRegular, told } from "./present-file.js";
import { missing } from "./read.js";
import { ripgrep, ripgrepFiles } from "./ripgrep.js";

const charsMax = 40_000;
const columnsMax = 500;

export interface GrepInput {
  readonly pattern: string;
  readonly path?: string;
  readonly glob?: string;
}

export const grep = (files: LoopFiles): Tool =>
  tool({
    description: `Searches the files of the workspace for a regular expression (of Rust: no look-around, no back-references), line by line. Answers with path:line:text. Leaves out what .gitignore names, .git and binary files; to search in an ignored directory give it as \`path\`. At most ${charsMax} characters.`,
    inputSchema: jsonSchema<GrepInput>({
      type: "object",
      properties: {
        pattern: { type: "string", minLength: 1 },
        path: { type: "string", description: "The directory or file to search. Default the root of the workspace" },
        glob: { type: "string", minLength: 1, description: 'Only files whose names fit, such as "*.ts"' },
      },
      required: ["pattern"],
      additionalProperties: false,
    }),
    execute: async ({ pattern, path: given = ".", glob: only }, { signal }) => {
      const path = files.locate(given);
      const options = [
        ...["--line-number", "--no-heading", "--with-filename", "--null", "--color=never", "--sort=path"],
        ...[`--max-columns=${columnsMax}`, "--max-columns-preview"],
        ...(only === undefined ? [] : [`--glob=${only}`]),
        `--regexp=${pattern}`,
      ];
      using top = files.open();
      if (isDirectory(top, path)) {
        using directory = openDirectory(top, path);
        const [{ output, cut }, visible] = await Promise.all([
          ripgrep(directory, options, "./", { signal }),
          // A glob overrides what is ignored; the list of what is not puts that right.
          only === undefined ? undefined : ripgrepFiles(directory, { signal }),
        ]);
        const names = visible === undefined ? undefined : new Set(visible.names);
        const shown = (name: string): boolean => names?.has(name) ?? true;
        return answer(
          rows(output).filter(({ name }) => shown(name)),
          (name) => below(path, name),
          cut,
          pattern,
        );
      }
      using directory = openDirectory(top, parentOf(path));
      const opened = openRegular(files.fileSystem, directory, path);
      if (opened === undefined) throw missing(path);
      try {
        const { output, cut } = await ripgrep(directory, options, opened.fd, { signal });
        return answer(rows(output), () => path, cut, pattern);
      } finally {
        files.fileSystem.close(opened.fd);
      }
    },
  });

/** What cannot be looked at is left to whoever opens it, who says what is the matter. */
function isDirectory(top: Directory, path: WorkspacePath): boolean {
  if (path === "") return true;
  try {
    using parent = openDirectory(top, parentOf(path));
    return parent.lstat(baseName(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw told("search", path, error);
  }
}

function answer(
  found: readonly Row[],
  pathOf: (name: string) => WorkspacePath,
  cut: "much" | "long" | undefined,
  pattern: string,
): string {
  const lines: string[] = [];
  let chars = 0;
  let left = 0;
  for (const row of found) {
    const line = `${displayName(pathOf(row.name))}:${shownLine(row.text)}`;
    if (left > 0 || chars + line.length > charsMax) {
      left++;
      continue;
    }
    chars += line.length + 1;
    lines.push(line);
  }
  if (cut === "long") lines.push("[the search was ended after 30 s; search in a narrower path]");
  else if (cut === "much") lines.push("[many more lines fit; use a narrower pattern, path or glob]");
  else if (left > 0) lines.push(`[${left} more lines are left out; use a narrower pattern, path or glob]`);
  return lines.length === 0 ? `[nothing here fits ${JSON.stringify(pattern)}]` : lines.join("\n");
}

interface Row {
  readonly name: string;
  readonly text: string;
}

/** `name NUL number:text` lines. The name may hold anything but a NUL; the text is of whatever encoding. */
function rows(output: Buffer): readonly Row[] {
  const found: Row[] = [];
  for (let from = 0; from < output.length;) {
    const line = output.indexOf(10, from);
    const notice = binaryNotice.exec(output.toString("latin1", from, line === -1 ? output.length : line));
    if (notice?.[1] !== undefined) {
      found.push({ name: nameFromBytes(Buffer.from(notice[1], "latin1")), text: "[binary: not searched to its end]" });
      if (line === -1) break;
      from = line + 1;
      continue;
    }
    const nul = output.indexOf(0, from);
    if (nul === -1) break;
    const end = output.indexOf(10, nul);
    const text = output.toString("utf8", nul + 1, end === -1 ? output.length : end);
    found.push({ name: nameFromBytes(output.subarray(from, nul)), text });
    if (end === -1) break;
    from = end + 1;
  }
  return found;
}

/** The one line that is not of that form: something fitted in a file that turned out to be binary. */
const binaryNotice =
  /^([^\0]+): (?:binary file matches|WARNING: stopped searching binary file after match) \(found .*\)$/;
