/** Which model `run` was told to use. Pure. */
import { ModelError } from "../core/index.js";
import { usage } from "./args.js";

export type ModelChoice =
  /** A file of steps that are played. */
  | { readonly kind: "script"; readonly file: string }
  /** The package `@ai-sdk/<provider>`, installed beside looprig. */
  | { readonly kind: "provider"; readonly provider: string; readonly name: string }
  /** Any server that speaks the OpenAI-compatible protocol. */
  | { readonly kind: "compatible"; readonly baseUrl: string; readonly name: string };

const scriptPrefix = "script:";

/** Throws `model.not_chosen`, `usage.invalid`. */
export function chooseModel(
  options: { readonly model: string | undefined; readonly baseUrl: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
): ModelChoice {
  const inherited = env["LOOPRIG_MODEL"]?.trim();
  const given = options.model ?? (inherited === "" ? undefined : inherited);
  const field = options.model === undefined ? "LOOPRIG_MODEL" : "--model";
  const { baseUrl } = options;
  if (given === undefined) {
    if (baseUrl === undefined) throw new ModelError("model.not_chosen", "Cannot run: no model was chosen", {});
    throw usage("--model", "Cannot use --base-url alone: wanted the model's name too", "--model NAME", "--model NAME");
  }
  if (given.startsWith(scriptPrefix)) {
    const file = given.slice(scriptPrefix.length);
    if (baseUrl !== undefined) {
      throw usage(
        "--base-url",
        "Cannot use --base-url with a script: it asks no server; leave it out",
        "no --base-url",
      );
    }
    if (file === "") throw usage(field, `Cannot use ${JSON.stringify(given)}: wanted script:FILE`, "script:FILE");
    return { kind: "script", file };
  }
  if (baseUrl !== undefined) return { kind: "compatible", baseUrl, name: given };
  const [, provider, name] = /^([a-z0-9][a-z0-9-]{0,63})\/(\S+)$/.exec(given) ?? [];
  if (provider === undefined || name === undefined) {
    throw usage(
      field,
      `Cannot use ${JSON.stringify(given)} as a model: wanted PROVIDER/NAME, as in anthropic/claude-sonnet-4-5; a name alone belongs to --base-url`,
      "PROVIDER/NAME",
      "looprig run --help",
    );
  }
  return { kind: "provider", provider, name };
}

/** An address of HTTP, or undefined. */
export function parseBaseUrl(given: string): string | undefined {
  if (!URL.canParse(given)) return undefined;
  const { protocol } = new URL(given);
  return protocol === "http:" || protocol === "https:" ? given : undefined;
}
