/**
 * Yes or no to what the agent wants to run. On a terminal the user is asked; without one the answer is no, and says how
 * it could be a yes. One question at a time, in the order in which they were asked.
 */
import type { GateAnswer } from "../session/index.js";
import type { Context } from "./context.js";
import { prose } from "./spelling.js";
import { callHead, wholeCommand } from "./render-run.js";
import type { ShownCall } from "./render-run.js";

/** Nobody reads more before saying yes. */
const shownCharsMax = 20_000;
const attemptsMax = 3;

/** How a yes that holds for the rest of the session stands in its journal. */
export const alwaysReason = "always in this session";

export class Approvals {
  readonly #context: Context;
  readonly #always: Set<string>;

  /** `always`: the tools that the user has allowed for the whole session before. */
  constructor(context: Context, always: Iterable<string>) {
    this.#context = context;
    this.#always = new Set(always);
  }

  /** Whether the next question is put to the user. */
  asks({ name }: ShownCall): boolean {
    return !this.#always.has(name) && this.#context.canAsk;
  }

  /** Undefined when an interrupt came first: then nobody waits for an answer any more. */
  async ask(call: ShownCall): Promise<GateAnswer | undefined> {
    const { stderr } = this.#context.environment;
    if (this.#always.has(call.name)) return { approve: true };
    if (!this.#context.canAsk) {
      return {
        approve: false,
        reason:
          "there is no terminal to ask the user on; `looprig run --allow bash` would allow shell commands. Go on without it, or say what you would need",
      };
    }
    const { dim, bold } = this.#context.talkStyle;
    const whole = wholeCommand(call);
    if (whole !== undefined && whole.length > shownCharsMax) {
      return { approve: false, reason: `it is too long to be read by the user: ${whole.length} characters` };
    }
    if (whole === undefined) await stderr.write(dim(callHead(call)));
    else {
      const lines = prose(whole).trimEnd().split("\n");
      const head = dim(callHead({ ...call, input: undefined }).trimEnd());
      await stderr.write(`${head}\n${lines.map((line) => `    ${line}\n`).join("")}  `);
    }
    const answer = await this.#readAnswer(`${bold("allow?")}  [y] once  [a] always  [n] no  `);
    if (answer !== "always") return answer;
    this.#always.add(call.name);
    return { approve: true, reason: alwaysReason };
  }

  async #readAnswer(question: string): Promise<GateAnswer | "always" | undefined> {
    const { environment, signal } = this.#context;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      await environment.stderr.write(question);
      let line: string | undefined;
      try {
        line = await environment.stdin.readLine(signal);
      } catch (error) {
        if (!signal.aborted) throw error;
        return undefined;
      }
      if (line === undefined) {
        await environment.stderr.write("\n");
        return { approve: false, reason: "the user gave no answer" };
      }
      const answer = readApproval(line);
      if (answer !== undefined) return answer;
    }
    return { approve: false, reason: "the user gave no answer" };
  }
}

/** `y`, `a`, `n`, or `n` with a reason that the agent is told. Anything else is none: Enter alone must run nothing. */
export function readApproval(line: string): GateAnswer | "always" | undefined {
  const [, word = "", rest = ""] = /^\s*([a-z]+)\b[\s,:]*(.*?)\s*$/i.exec(line) ?? [];
  switch (word.toLowerCase()) {
    case "n":
    case "no":
      return { approve: false, ...(rest === "" ? {} : { reason: rest }) };
    case "y":
    case "yes":
      return rest === "" ? { approve: true } : undefined;
    case "a":
    case "always":
      return rest === "" ? "always" : undefined;
    default:
      return undefined;
  }
}
