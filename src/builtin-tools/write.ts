/**
 * `Write`: a whole file. To an absent path it needs nothing and never replaces; to an existing one it needs that the loop
 * has seen the whole of what stands there now (C9).
 */
import { LooprigError, displayName, sha256Hex } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { jsonSchema, tool } from "../tool/index.js";
import type { Tool, ToolOutput } from "../tool/index.js";
import type { Observation, PathObservation } from "../workspace/index.js";
import { differenceOf } from "./difference.js";
import { stale } from "./loop-files.js";
import type { HeldFile, LoopFiles } from "./loop-files.js";
import type { PresentFile } from "./present-file.js";
import { bytesOf, isSpeakable, textOf, withEnds } from "./text-form.js";

export interface WriteInput {
  readonly file_path: string;
  readonly content: string;
}

/** A file that changes faster than it can be written is somebody else's at the moment. */
const attemptsMax = 3;

export const write = (files: LoopFiles): Tool =>
  tool({
    description:
      "Writes a whole text file of the workspace, and makes the directories it needs. A file that exists must have been read whole before, as it is now; otherwise nothing is written and the answer shows what stands there. To change a part of a file use Edit.",
    inputSchema: jsonSchema<WriteInput>({
      type: "object",
      properties: {
        file_path: { type: "string", description: "Relative to the root of the workspace, or absolute inside it" },
        content: { type: "string", description: "All of the file" },
      },
      required: ["file_path", "content"],
      additionalProperties: false,
    }),
    execute: async ({ file_path, content }, { signal }) => {
      assertSpeakable("content", content);
      return files.change(files.locate(file_path), signal, async (file) => {
        for (let attempt = 1; ; attempt++) {
          const present = file.present();
          const reason = present === undefined ? undefined : unseen(file.observed.last, present);
          if (present !== undefined && reason !== undefined) return refuse(files, file, present, reason);
          const form = present === undefined ? undefined : textOf(present.bytes);
          const bytes = bytesOf(
            withEnds(content, form?.ends ?? "lf"),
            form?.bom === true && !content.startsWith("\ufeff"),
          );
          if (await file.commit(bytes, present)) return wrote(files, file, bytes, present);
          if (attempt === attemptsMax) throw stale(file.path, "other");
        }
      });
    },
  });

/** Why what stands there may not be written over; undefined when it may. */
function unseen(last: Observation | undefined, { contentHash }: PresentFile): Parameters<typeof stale>[1] | undefined {
  if (last === undefined) return "nothing";
  if (last.kind === "absent") return "absent";
  if (last.contentHash !== contentHash) return "other";
  return last.complete ? undefined : "part";
}

/** The refusal, with what stands there: when that is all of it, it has been seen now. */
function refuse(
  files: LoopFiles,
  { path, observed }: HeldFile,
  present: PresentFile,
  reason: Parameters<typeof stale>[1],
): ToolOutput {
  const error = stale(path, reason);
  const shown = showPresent(files, path, observed, present);
  const onward = shown.complete ? "write again with this taken into account" : "read the file, then write again";
  return {
    text: `${error.message}; ${onward}.\n${shown.text}`,
    data: { code: error.code, details: error.details },
    isError: true,
  };
}

/** The present text or its difference from what was seen; recorded as seen when it is complete. */
export function showPresent(
  files: LoopFiles,
  path: WorkspacePath,
  observed: PathObservation,
  present: PresentFile,
): { readonly text: string; readonly complete: boolean } {
  const form = textOf(present.bytes);
  if (form === undefined) return { text: "What stands there is not text in UTF-8.", complete: false };
  const { last } = observed;
  const base = last?.kind === "present" && last.complete ? files.seen.get(last.contentHash) : undefined;
  const shown = differenceOf(path, base, form.text);
  if (shown.complete) {
    files.seen.keep(present.contentHash, form.text);
    observed.record({ kind: "present", contentHash: present.contentHash, complete: true });
  }
  return shown;
}

function wrote(files: LoopFiles, file: HeldFile, bytes: Buffer, before: PresentFile | undefined): string {
  const contentHash = sha256Hex(bytes);
  file.observed.record({ kind: "present", contentHash, complete: true });
  const form = textOf(bytes);
  if (form !== undefined) files.seen.keep(contentHash, form.text);
  const name = displayName(file.path);
  if (before === undefined) return `Created ${name}, ${bytes.length} bytes.`;
  return before.contentHash === contentHash
    ? `${name} holds exactly that already.`
    : `Wrote ${name}, ${bytes.length} bytes.`;
}

export function assertSpeakable(field: string, text: string): void {
  if (isSpeakable(text)) return;
  throw new LooprigError(
    "option.invalid",
    `Cannot write \`${field}\`: it holds half of a surrogate pair, which has no bytes in UTF-8; send whole characters`,
    { field, given: "ill-formed UTF-16", wanted: "whole characters" },
  );
}
