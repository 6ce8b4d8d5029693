/** A single tool: what the model is told, what is checked, what runs. */
import type { CallId } from "../core/index.js";
import type { NeedsApproval } from "./approval.js";
import type { ToolOutput } from "./output.js";
import { optionsOf, reading } from "./options.js";
import type { Options } from "./options.js";
import { invalid } from "./refusals.js";
import { readSchema } from "./schema.js";
import type { InferInput, ReadSchema, ToolSchema } from "./schema.js";

/** What `execute` learns of its call. */
export interface CallContext {
  /** Aborts when the call was interrupted; it is given a few seconds to end. */
  readonly signal: AbortSignal;
  readonly callId: CallId;
  /** Shows text to whoever watches while the call runs; it is never kept. */
  readonly progress: (text: string) => void;
}

/** `Input` is what `execute` takes; `Tool` alone is any tool. */
export interface Tool<Input = never> {
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly needsApproval?: NeedsApproval<Input> | undefined;
  /** Runs once per call, with checked input. What it throws is told to the model as an error. */
  execute(input: Input, context: CallContext): Promise<ToolOutput> | ToolOutput;
}

/** What `tool` is given: a tool of a family, whose bindings are those of the `build` around it. */
export interface ToolOptions<S extends ToolSchema> {
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  readonly inputSchema: S;
  /** Default false. */
  readonly needsApproval?: NeedsApproval<InferInput<S>> | undefined;
  /** Runs once per call, with checked input. What it throws is told to the model as an error. */
  execute(input: InferInput<S>, context: CallContext): Promise<ToolOutput> | ToolOutput;
}

/** A tool read and checked, in parts that nobody else can reach. */
export interface ReadTool {
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly schema: ReadSchema;
  readonly needsApproval: NeedsApproval<never>;
  readonly execute: (input: unknown, context: CallContext) => unknown;
}

export const toolMembers = ["description", "inputSchema", "needsApproval", "execute"] as const;

const made = new WeakMap<object, ReadTool>();

/** A tool of a family: what `build` of `defineTools` returns by name. Throws `tool_definition.invalid`. */
export function tool<S extends ToolSchema>(options: ToolOptions<S>): Tool<InferInput<S>> {
  const read = reading("tool", () => readTool(options, "tool", ""));
  const { description, inputSchema, needsApproval, execute } = read;
  const result = Object.freeze({ description, inputSchema, needsApproval, execute } as Tool<InferInput<S>>);
  made.set(result, read);
  return result;
}

/** Reads a tool of whatever caller. `prefix` leads the names of fields. Throws `tool_definition.invalid`. */
export function readTool(given: unknown, definition: string, prefix: string): ReadTool {
  const known = typeof given === "object" && given !== null ? made.get(given) : undefined;
  return known ?? readMembers(optionsOf(given, toolMembers, definition, prefix), definition, prefix);
}

/** The members of a tool, each read once: what is done to the options afterwards changes nothing. */
export function readMembers(options: Options, definition: string, prefix: string): ReadTool {
  const { description, inputSchema, needsApproval = false, execute } = options;
  if (typeof description !== "string" || description.trim() === "") {
    throw invalid(definition, `${prefix}description`, "a text that tells the model what the tool does");
  }
  if (typeof needsApproval !== "boolean" && typeof needsApproval !== "function") {
    throw invalid(definition, `${prefix}needsApproval`, "true, false or a function of the input");
  }
  if (typeof execute !== "function") throw invalid(definition, `${prefix}execute`, "a function");
  return Object.freeze({
    description,
    inputSchema: inputSchema as ToolSchema,
    schema: readSchema(inputSchema, definition, `${prefix}inputSchema`),
    needsApproval:
      typeof needsApproval === "boolean"
        ? needsApproval
        : (input: never) => Reflect.apply(needsApproval, options, [input]) as boolean,
    // `this` stays what the author wrote the method on.
    execute: (input: unknown, context: CallContext): unknown => Reflect.apply(execute, options, [input, context]),
  });
}
