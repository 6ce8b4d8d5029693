/** `Read`: lines of a text file, with their numbers. */
import { LooprigError, displayName } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { jsonSchema, tool } from "../tool/index.js";
import type { Tool, ToolOutput } from "../tool/index.js";
import { isShownWhole, numbered } from "./difference.js";
import type { LoopFiles } from "./loop-files.js";
import type { PresentFile } from "./present-file.js";
import { linesOf, textOf } from "./text-form.js";

const linesMax = 2_000;
/** Below what a loop keeps of a result, so that the notice of what is left out is never itself left out. */
const charsMax = 45_000;
const bytesShownMax = 512;

export interface ReadInput {
  readonly file_path: string;
  readonly offset?: number;
  readonly limit?: number;
}

export const read = (files: LoopFiles): Tool =>
  tool({
    description: `Reads a text file of the workspace. Lines are numbered as in "    12<tab>text"; the number and the tab are no part of the file. Shows at most ${linesMax} lines and ${charsMax} characters, and says how to go on.`,
    inputSchema: jsonSchema<ReadInput>({
      type: "object",
      properties: {
        file_path: { type: "string", description: "Relative to the root of the workspace, or absolute inside it" },
        offset: { type: "integer", minimum: 1, description: "The first line to show, from 1. Default 1" },
        limit: { type: "integer", minimum: 1, description: `How many lines to show. Default ${linesMax}` },
      },
      required: ["file_path"],
      additionalProperties: false,
    }),
    execute: async (input) =>
      keptOutput(files, input) ??
      files.look(files.locate(input.file_path), ({ path, observed, present }) => {
        const found = present();
        if (found === undefined) {
          observed.record({ kind: "absent" });
          throw missing(path);
        }
        const { output, complete } = show(path, found, input);
        const { contentHash } = found;
        const { last } = observed;
        const known = last?.kind === "present" && last.contentHash === contentHash && last.complete;
        if (complete) files.seen.keep(contentHash, textOf(found.bytes)?.text ?? "");
        // A part of a file that was seen whole takes nothing away from that.
        if (!known) observed.record({ kind: "present", contentHash, complete });
        return output;
      }),
  });

const outputName = /^output:[0-9a-f]{8}$/;
/** Below what is shown of a line: programs write megabytes without an end of one, and all of it must be within reach. */
const pieceChars = 1_000;

/** An output that was too long to be shown, by the name its cut form gave it. A file of that name is found as `./output:…`. */
function keptOutput({ outputs }: LoopFiles, input: ReadInput): ToolOutput | undefined {
  const name = input.file_path;
  if (outputs === undefined || !outputName.test(name)) return undefined;
  const text = outputs.read(name);
  if (text === undefined) {
    return {
      text: `${name} is not kept any more: only the last ones are, while the session runs. Call the tool again`,
      isError: true,
    };
  }
  // A NUL is what tells a text from other bytes; here everything is shown.
  const lines = text.replaceAll("\0", "\u2400").replaceAll(longLine, "$&\n");
  return show(name as WorkspacePath, { bytes: Buffer.from(lines, "utf8") }, input).output;
}

const longLine = new RegExp(`.{${pieceChars}}(?=.)`, "gu");

export const missing = (path: WorkspacePath): LooprigError =>
  new LooprigError("file.missing", `Cannot find ${displayName(path || ".")}: there is no such file in the workspace`, {
    path,
  });

interface Shown {
  readonly output: ToolOutput;
  readonly complete: boolean;
}

function show(
  path: WorkspacePath,
  { bytes }: Pick<PresentFile, "bytes">,
  { offset = 1, limit = linesMax }: ReadInput,
): Shown {
  const form = textOf(bytes);
  if (form === undefined) return { output: notText(path, bytes), complete: false };
  const lines = linesOf(form.text);
  if (lines.length === 0) return { output: "[the file is empty]", complete: true };
  if (offset > lines.length) {
    return { output: { text: `[the file has only ${lines.length} lines]`, isError: true }, complete: false };
  }
  const shown: string[] = [];
  let chars = 0;
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    const text = numbered(offset + shown.length, line);
    if (chars + text.length > charsMax) break;
    chars += text.length + 1;
    shown.push(text);
  }
  const next = offset + shown.length;
  const notes: string[] = [];
  if (offset > 1 || next <= lines.length) {
    const onward = next <= lines.length ? `; go on with offset ${next}` : "";
    notes.push(`lines ${offset} to ${next - 1} of ${lines.length}${onward}`);
  }
  if (form.ends !== "lf") {
    notes.push(form.ends === "crlf" ? "line ends are CRLF; edits keep them" : "line ends are mixed, LF and CRLF");
  }
  if (form.bom) notes.push("it begins with a byte order mark; edits keep it");
  const whole = offset === 1 && next > lines.length && lines.every(isShownWhole);
  return { output: [...shown, ...notes.map((note) => `[${note}]`)].join("\n"), complete: whole };
}

function notText(path: WorkspacePath, bytes: Buffer): string {
  const start = bytes.subarray(0, bytesShownMax);
  const more = bytes.length > start.length ? `, the first ${start.length} are shown` : "";
  const heading = `[${displayName(path)} is not text in UTF-8: ${bytes.length} bytes${more}]`;
  const rows: string[] = [];
  for (let at = 0; at < start.length; at += 16) {
    const row = start.subarray(at, at + 16);
    const text = row.toString("latin1").replaceAll(/[^ -~]/g, ".");
    rows.push(
      `${at.toString(16).padStart(8, "0")}  ${row.toString("hex").replaceAll(/(..)/g, "$1 ").padEnd(49)} ${text}`,
    );
  }
  return [heading, ...rows].join("\n");
}
