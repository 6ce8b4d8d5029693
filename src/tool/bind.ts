/** From definitions to tools that a loop can call: built once per loop, with what it may have and nothing else. */
import { raceAbort } from "../core/index.js";
import type { Abortable, CallId } from "../core/index.js";
import { needsApproval } from "./approval.js";
import { attenuate } from "./attenuation.js";
import type { AvailableBindings } from "./attenuation.js";
import { CallScope } from "./call-scope.js";
import { buildOf } from "./definition.js";
import type { ToolDefinition } from "./definition.js";
import { bounded, issuesInWords } from "./issues.js";
import { resultOf } from "./output.js";
import type { ToolResult } from "./output.js";
import { invalid } from "./refusals.js";
import type { JsonSchema } from "./schema.js";
import type { CallContext, ReadTool } from "./tool.js";

/** A tool of one loop. */
export interface BoundTool {
  readonly name: string;
  readonly description: string;
  /** What the model is told of the input: draft 2020-12, always of one object, frozen. */
  readonly inputSchema: JsonSchema;
  /** Checks what the model sent. Rejects only with the signal's reason, when that aborts while the schema is at work. */
  readonly validate: (input: unknown, options?: Abortable) => Promise<Validation>;
  /** Whether the call needs a person's yes (T5). Takes the `value` of `validate`. In doubt true; never rejects. */
  readonly needsApproval: (value: unknown) => Promise<boolean>;
  /**
   * Runs the tool on the `value` of `validate`. Rejects with what the tool threw, at once with the signal's reason if that
   * has aborted already. When it settles, permits that the call still holds are revoked.
   */
  readonly execute: (value: unknown, call: BoundCall) => Promise<ToolResult>;
}

/** What a loop says of a call. */
export interface BoundCall extends Omit<CallContext, "progress"> {
  /** Receives what the tool shows, until it settles. */
  readonly progress?: CallContext["progress"] | undefined;
}

/** The input as the tool takes it, or what is wrong with it: a few lines for the model. */
export type Validation =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly string[]; readonly value?: undefined };

/**
 * Builds the tools of a definition for one loop. Nothing of it is shared with another build. Rejects with
 * `tool_definition.missing_binding`, `.invalid_binding`, `.produced_names`, `.missing_tool`, `.build_failed` or `.invalid`,
 * and with `tool_binding.ended` when the loop has ended before;
 * an abort rejects with the signal's reason, and what a late build returns is dropped.
 */
export async function bindTools(
  definition: ToolDefinition,
  available: AvailableBindings,
  { signal }: Abortable = {},
): Promise<ReadonlyMap<string, BoundTool>> {
  const build = buildOf(definition);
  if (build === undefined) {
    throw invalid(
      "bindTools",
      "definition",
      "what `defineTool`, `defineTools` or `defineReadTools` of this looprig made",
    );
  }
  signal?.throwIfAborted();
  const { name, requires } = definition;
  const calls = new CallScope();
  const bindings = attenuate(name, requires, available, calls);
  const coordinator = requires.includes("workspace") ? available.workspace?.coordinator : undefined;
  const viewOf = (callId: CallId): CallView | undefined => coordinator?.forCall?.(callId);
  const built = await raceAbort(build(bindings), signal);
  return new Map([...built].map(([each, read]) => [each, bound(each, read, calls, viewOf)]));
}

/** What a schema answered, which may be anything. Only a value that is there has passed. */
function validationOf(answer: unknown): Validation {
  if (typeof answer === "object" && answer !== null) {
    const { issues, value } = answer as { readonly issues?: unknown; readonly value?: unknown };
    if (issues !== undefined) return { issues: issuesInWords(issues) };
    if ("value" in answer) return { value };
  }
  return { issues: ["the input could not be checked: the schema of the tool gave no answer"] };
}

function reasonOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return "the schema of the tool failed";
  }
}

type CallView = Parameters<CallScope["run"]>[0] & Disposable;

function bound(
  name: string,
  { description, schema, needsApproval: rule, execute }: ReadTool,
  calls: CallScope,
  viewOf: (callId: CallId) => CallView | undefined,
): BoundTool {
  return Object.freeze<BoundTool>({
    name,
    description,
    inputSchema: schema.stated,
    validate: async (input, { signal } = {}) => {
      signal?.throwIfAborted();
      try {
        return validationOf(await raceAbort(Promise.resolve(schema.check(input)), signal));
      } catch (error) {
        if (signal?.aborted === true) throw error;
        // Input that nests too deep fails in the schema, not by it.
        return { issues: [bounded(`the input could not be checked: ${reasonOf(error)}`)] };
      }
    },
    needsApproval: (value) => needsApproval(rule, value),
    execute: async (value, { signal, callId, progress }) => {
      signal.throwIfAborted();
      let running = true;
      const show = (text: unknown): void => {
        if (running && typeof text === "string") progress?.(text);
      };
      const context = Object.freeze<CallContext>({ signal, callId, progress: show });
      using view = viewOf(callId);
      try {
        const run = (): unknown => execute(value, context);
        return resultOf(name, await (view === undefined ? run() : calls.run(view, run)));
      } finally {
        running = false;
      }
    },
  });
}
