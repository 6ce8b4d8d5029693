/**
 * Definitions of tools: frozen values that say what they produce and what they require, and hold what builds them where
 * only `bindTools` finds it. So no tool is ever built with bindings that were not attenuated.
 */
import type { NeedsApproval } from "./approval.js";
import { isCapability, memberOf } from "./capabilities.js";
import type { BindingsFor, Capability, Flat } from "./capabilities.js";
import { isOurs, nameOf, optionsOf, reading } from "./options.js";
import type { ToolOutput } from "./output.js";
import { buildFailed, invalid, invalidRequirement, missingTool, producedNames } from "./refusals.js";
import type { InferInput, ToolSchema } from "./schema.js";
import { readMembers, readTool, toolMembers } from "./tool.js";
import type { CallContext, ReadTool, Tool } from "./tool.js";

declare const defined: unique symbol;

/** One or more tools, to be bound once per loop. Made by `defineTool`, `defineTools` and `defineReadTools` only. */
export interface ToolDefinition<
  Names extends string = string,
  R extends readonly Capability[] = readonly Capability[],
> {
  readonly name: string;
  /** The names the model calls the tools by. */
  readonly produces: readonly Names[];
  readonly requires: R;
  readonly [defined]: true;
}

/** What `defineTool` is given. `execute` finds in its second argument the ids, the call, and the bindings of `requires`. */
export interface DefineToolOptions<Name extends string, S extends ToolSchema, R extends readonly Capability[]> {
  /** 1 to 64 letters, digits, `_` and `-`. */
  readonly name: Name;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  readonly inputSchema: S;
  /** Default none. */
  readonly requires?: R | undefined;
  /** Default false. */
  readonly needsApproval?: NeedsApproval<InferInput<S>> | undefined;
  /** Runs once per call, with checked input. What it throws is told to the model as an error. */
  execute(input: InferInput<S>, context: Flat<BindingsFor<R> & CallContext>): Promise<ToolOutput> | ToolOutput;
}

/** One tool. Throws `tool_definition.invalid` or `.invalid_requirement`. */
export function defineTool<const Name extends string, S extends ToolSchema, const R extends readonly Capability[] = []>(
  options: DefineToolOptions<Name, S, R>,
): ToolDefinition<Name, R> {
  const at = "defineTool";
  const { name, requires, read } = reading(at, () => {
    const given = optionsOf(options, ["name", "requires", ...toolMembers], at);
    const own = nameOf(given["name"], at, "name");
    return { name: own, requires: requirementsOf(given["requires"], own), read: readMembers(given, own, "") };
  });
  const { execute, ...rest } = read;
  // The tool keeps nothing between builds, so what differs from build to build is the context alone.
  return define<Name, R>(name, [name], requires, (bindings) =>
    Promise.resolve(
      new Map([[name, { ...rest, execute: (input, context) => execute(input, contextOf(bindings, context)) }]]),
    ),
  );
}

/** What `defineTools` is given. */
export interface DefineToolsOptions<Names extends string, Built, R extends readonly Capability[]> {
  /** Of the family: 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string;
  /** The names of the tools, in the same form. */
  readonly produces: readonly Names[];
  /** Default none. */
  readonly requires?: R | undefined;
  /** Runs once per loop. The keys of what it returns are the names in `produces`. */
  build(bindings: BindingsFor<R>): Exactly<Built, Names> | Promise<Exactly<Built, Names>>;
}

/** `Built`, if it has no other keys than `Names`. */
type Exactly<Built, Names extends string> = Built & { readonly [K in Exclude<keyof Built, Names>]: never };

/**
 * Several tools that share something made once per loop. Throws `tool_definition.invalid`, `.invalid_requirement` or
 * `.produced_names`.
 */
export function defineTools<
  const Names extends string,
  Built extends Readonly<Record<NoInfer<Names>, Tool>>,
  const R extends readonly Capability[] = [],
>(options: DefineToolsOptions<Names, Built, R>): ToolDefinition<Names, R> {
  return defineFamily(options, "defineTools", requirementsOf);
}

/** What `defineReadTools` is given. */
export interface DefineReadToolsOptions<Names extends string, Built> extends Omit<
  DefineToolsOptions<Names, Built, ReadOnly>,
  "requires"
> {
  /** Default, and all it can be: `["workspace-read"]`. */
  readonly requires?: ReadOnly | undefined;
}
type ReadOnly = readonly ["workspace-read"];

/** Tools that look at the workspace and surely cannot change it. Throws as `defineTools` does. */
export function defineReadTools<const Names extends string, Built extends Readonly<Record<NoInfer<Names>, Tool>>>(
  options: DefineReadToolsOptions<Names, Built>,
): ToolDefinition<Names, ReadOnly> {
  return defineFamily(options, "defineReadTools", (given, name) => {
    const requires = requirementsOf(given === undefined ? ["workspace-read"] : given, name);
    const wrong = requires.find((capability) => capability !== "workspace-read");
    if (wrong !== undefined) throw invalidRequirement(name, wrong, 'and read tools are given "workspace-read" only');
    if (requires.length === 0) throw invalidRequirement(name, "", 'and read tools require "workspace-read"');
    return requires;
  });
}

function defineFamily<Names extends string, R extends readonly Capability[]>(
  options: unknown,
  at: string,
  requirements: (given: unknown, name: string) => readonly Capability[],
): ToolDefinition<Names, R> {
  const { given, name, produces, requires, build } = reading(at, () => {
    const read = optionsOf(options, ["name", "produces", "requires", "build"], at);
    const own = nameOf(read["name"], at, "name");
    const names = namesOf(read["produces"], own);
    const required = requirements(read["requires"], own);
    const { build: builder } = read;
    if (typeof builder !== "function") throw invalid(own, "build", "a function that returns the tools by name");
    return { given: read, name: own, produces: names, requires: required, build: builder };
  });
  return define<Names, R>(name, produces, requires, async (bindings) => {
    try {
      return builtTools(await Reflect.apply(build, given, [bindings]), name, produces);
    } catch (error) {
      throw isOurs(error) ? error : buildFailed(name, error);
    }
  });
}

/** Makes the tools of one loop. Called with attenuated bindings only. */
type Build = (bindings: object) => Promise<ReadonlyMap<string, ReadTool>>;

const builds = new WeakMap<object, Build>();

/**
 * What looprig's own tools are, for the description of a rig (R4). The version changes when what the tools promise does:
 * not with words of a description or a schema, which a release may improve without anybody's configuration having changed.
 */
export interface ToolContract {
  readonly version: number;
  /** What the caller chose, where it is not the default. */
  readonly settings?: Readonly<Record<string, boolean | number | string>> | undefined;
}

const contracts = new WeakMap<object, ToolContract>();

/** Marks a definition as looprig's own. Not for users' tools, which are described by what their caller configured. */
export function builtIn<D extends ToolDefinition>(definition: D, contract: ToolContract): D {
  contracts.set(definition, Object.freeze({ ...contract }));
  return definition;
}

/** Undefined for everybody else's tools. */
export const contractOf = (definition: ToolDefinition): ToolContract | undefined => contracts.get(definition);

/** Undefined for what no function of this file returned. */
export const buildOf = (definition: unknown): Build | undefined =>
  typeof definition === "object" && definition !== null ? builds.get(definition) : undefined;

function define<Names extends string, R extends readonly Capability[]>(
  name: string,
  produces: readonly string[],
  requires: readonly Capability[],
  build: Build,
): ToolDefinition<Names, R> {
  const definition = Object.freeze({
    name,
    produces: Object.freeze([...produces]),
    requires: Object.freeze([...requires]),
  }) as unknown as ToolDefinition<Names, R>;
  builds.set(definition, build);
  return definition;
}

const contextOf = (bindings: object, context: CallContext): CallContext =>
  Object.freeze(Object.assign(Object.create(null) as object, bindings, context));

const capabilities = Object.keys(memberOf);

function requirementsOf(given: unknown = [], tool: string): readonly Capability[] {
  if (!Array.isArray(given)) throw invalid(tool, "requires", `a list of capabilities (${capabilities.join(", ")})`);
  const seen = new Set<Capability>();
  for (const word of given as readonly unknown[]) {
    if (!isCapability(word)) throw invalidRequirement(tool, shown(word), `which is none of ${capabilities.join(", ")}`);
    if (seen.has(word)) throw invalidRequirement(tool, word, "and that twice");
    seen.add(word);
  }
  return [...seen];
}

/** A name as it was given; of anything else only what kind of thing it is. */
const shown = (word: unknown): string =>
  typeof word === "string" ? word : `<${word === null ? "null" : typeof word}>`;

function namesOf(given: unknown, tool: string): readonly string[] {
  if (!Array.isArray(given)) throw invalid(tool, "produces", "a list of names");
  const names = given as readonly unknown[];
  const declared = names.map(shown);
  if (names.length === 0) throw producedNames(tool, "`produces` names no tool", declared);
  if (names.includes("")) throw producedNames(tool, "a name in `produces` is empty", declared);
  names.forEach((name, i) => nameOf(name, tool, `produces[${i}]`));
  const repeated = declared.find((name, i) => declared.indexOf(name) !== i);
  if (repeated !== undefined) throw producedNames(tool, `\`produces\` names "${repeated}" twice`, declared);
  return declared;
}

/** What `build` returned, if it is exactly what was declared. */
function builtTools(built: unknown, tool: string, declared: readonly string[]): ReadonlyMap<string, ReadTool> {
  if (typeof built !== "object" || built === null || Array.isArray(built)) {
    throw invalid(tool, "build", "a function that returns the tools by name, in an object");
  }
  const names = Object.keys(built);
  const absent = declared.filter((name) => !names.includes(name));
  const surplus = names.filter((name) => !declared.includes(name));
  if (absent.length > 0 || surplus.length > 0) {
    const problem = [
      absent.length > 0 ? `declared and not built: ${absent.join(", ")}` : "",
      surplus.length > 0 ? `built and not declared: ${surplus.join(", ")}` : "",
    ];
    throw producedNames(tool, problem.filter((text) => text !== "").join("; "), declared, names);
  }
  const tools = new Map<string, ReadTool>();
  for (const name of declared) {
    const each: unknown = (built as Readonly<Record<string, unknown>>)[name];
    if (each === undefined || each === null) throw missingTool(tool, name);
    tools.set(name, readTool(each, tool, `${name}.`));
  }
  return tools;
}
