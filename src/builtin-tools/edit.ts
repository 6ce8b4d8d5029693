/**
 * `Edit`: one text in a file becomes another. It applies to the bytes that stand there now, if what is to be replaced is
 * there exactly once, whatever was seen before; and says when they are not what was seen (C9).
 */
import { LooprigError, displayName, sha256Hex } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { jsonSchema, tool } from "../tool/index.js";
import type { Tool, ToolOutput } from "../tool/index.js";
import { differenceOf, excerpt } from "./difference.js";
import { stale } from "./loop-files.js";
import type { HeldFile, LoopFiles } from "./loop-files.js";
import type { PresentFile } from "./present-file.js";
import { missing } from "./read.js";
import { bytesOf, textOf, withEnds } from "./text-form.js";
import type { LineEnds, TextForm } from "./text-form.js";
import { assertSpeakable, showPresent } from "./write.js";

export interface EditInput {
  readonly file_path: string;
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

/** Each attempt applies to what stands there then; only a file that changes all the time is given up. */
const attemptsMax = 20;
const placesShownMax = 10;

export const edit = (files: LoopFiles): Tool =>
  tool({
    description:
      "Replaces a text in a file of the workspace by another. `old_string` must be in the file exactly once, with its white space, or `replace_all` be true. Line numbers that Read shows are no part of the file.",
    inputSchema: jsonSchema<EditInput>({
      type: "object",
      properties: {
        file_path: { type: "string", description: "Relative to the root of the workspace, or absolute inside it" },
        old_string: { type: "string", minLength: 1, description: "What is there, exactly" },
        new_string: { type: "string", description: "What shall be there" },
        replace_all: { type: "boolean", description: "Replace every occurrence. Default false" },
      },
      required: ["file_path", "old_string", "new_string"],
      additionalProperties: false,
    }),
    execute: async (input, { signal }) => {
      assertSpeakable("new_string", input.new_string);
      if (input.old_string === input.new_string) {
        return { text: "Nothing was written: `old_string` and `new_string` are the same.", isError: true };
      }
      return files.change(files.locate(input.file_path), signal, async (file) => {
        for (let attempt = 1; ; attempt++) {
          const present = file.present();
          if (present === undefined) throw missing(file.path);
          const form = textOf(present.bytes);
          if (form === undefined) throw notText(file.path);
          const found = placesIn(form, input);
          if (found.at.length === 0 || (found.at.length > 1 && input.replace_all !== true)) {
            return refuse(files, file, present, form, found.at);
          }
          const text = replaced(form.text, found);
          const bytes = bytesOf(text, form.bom);
          if (await file.commit(bytes, present)) return done(files, file, present, form, found, text, bytes);
          if (attempt === attemptsMax) throw stale(file.path, "other");
        }
      });
    },
  });

interface Found {
  readonly at: readonly number[];
  readonly old: string;
  readonly new: string;
}

/** Where the text to be replaced stands, as the model wrote it or with the line ends of the file. */
function placesIn(form: TextForm, { old_string, new_string, replace_all = false }: EditInput): Found {
  const withThose = (ends: LineEnds): Found => {
    const old = withEnds(old_string, ends);
    return { at: occurrences(form.text, old, replace_all ? old.length : 1), old, new: withEnds(new_string, ends) };
  };
  const asFile = withThose(form.ends);
  return asFile.at.length > 0 || form.ends !== "mixed" ? asFile : withThose("crlf");
}

/** Where `old` begins, at least `apart` from each other: places that overlap are two when one is to be chosen. */
function occurrences(text: string, old: string, apart: number): readonly number[] {
  const at: number[] = [];
  for (let next = text.indexOf(old); next !== -1; next = text.indexOf(old, next + apart)) at.push(next);
  return at;
}

function replaced(text: string, { at, old, new: by }: Found): string {
  let result = "";
  let from = 0;
  for (const place of at) {
    result += text.slice(from, place) + by;
    from = place + old.length;
  }
  return result + text.slice(from);
}

function refuse(
  files: LoopFiles,
  { path, observed }: HeldFile,
  present: PresentFile,
  form: TextForm,
  at: readonly number[],
): ToolOutput {
  const { last } = observed;
  const changed = last?.kind === "present" && last.contentHash !== present.contentHash;
  const error = new LooprigError(
    "file.no_unique_match",
    at.length === 0
      ? `Cannot edit ${displayName(path)}: \`old_string\` is not in it. Nothing was written`
      : `Cannot edit ${displayName(path)}: \`old_string\` is in it ${at.length} times, ${placesOf(form.text, at)}; wanted once. Write more of what stands around it, or set \`replace_all\`. Nothing was written`,
    { path, matches: at.length },
  );
  const more = changed
    ? `\nThe file is not as it was last seen. ${showPresent(files, path, observed, present).text}`
    : "";
  return { text: `${error.message}.${more}`, data: { code: error.code, details: error.details }, isError: true };
}

function placesOf(text: string, at: readonly number[]): string {
  const lines = at.slice(0, placesShownMax).map((place) => text.slice(0, place).split("\n").length);
  return `in line${lines.length === 1 ? "" : "s"} ${lines.join(", ")}${at.length > lines.length ? " and more" : ""}`;
}

function done(
  files: LoopFiles,
  { path, observed }: HeldFile,
  before: PresentFile,
  form: TextForm,
  { at, new: by }: Found,
  text: string,
  bytes: Buffer,
): string {
  const contentHash = sha256Hex(bytes);
  const { last } = observed;
  const seen = last?.kind === "present" ? last : undefined;
  const changed = seen !== undefined && seen.contentHash !== before.contentHash;
  // What somebody else wrote is told, and then known, unless it is too much to tell.
  const base = changed && seen.complete ? files.seen.get(seen.contentHash) : undefined;
  const difference = changed ? differenceOf(path, base, form.text) : undefined;
  const complete = (changed ? difference?.complete : seen?.complete) ?? false;
  observed.record({ kind: "present", contentHash, complete });
  if (complete) files.seen.keep(contentHash, text);

  const first = at[0] ?? 0;
  const count = at.length === 1 ? "" : `, ${at.length} times`;
  const shown = `Edited ${displayName(path)}${count}. Around the ${at.length === 1 ? "" : "first "}change:\n${excerpt(text, first, first + by.length)}`;
  return difference === undefined
    ? shown
    : `${shown}\nThe file was not as it was last seen; what others wrote was kept. ${difference.text}`;
}

const notText = (path: WorkspacePath): LooprigError =>
  new LooprigError(
    "file.not_text",
    `Cannot edit ${displayName(path)}: it is not text in UTF-8; use a program that knows its encoding`,
    { path },
  );
