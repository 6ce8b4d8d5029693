/** Speaks with `workspace-process.ts`. */
import type { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import type { TestProcess } from "../processes.js";
import type { Answer, Order, Setup } from "./workspace-process.js";

export interface SessionProcess {
  readonly process: TestProcess;
  /** The answer to opening the root. */
  readonly opened: Answer;
  tell(order: Order): Promise<Answer>;
  /** Tells an order with `stopAt`, and returns once the process has stopped itself there. */
  tellAndStop(order: Order): Promise<void>;
  /** Lets a stopped process go on, and returns the answer that was due. */
  goOn(): Promise<Answer>;
}

/** Opens the root of `place` in a process of its own. */
export async function startSession(place: Playground, setup: Partial<Setup> = {}): Promise<SessionProcess> {
  const whole: Setup = { root: place.root, stateDir: place.stateDir, ...setup };
  const child = startProcess("tests/cases/workspace-process.ts", [JSON.stringify(whole)]);
  const answer = async (): Promise<Answer> => JSON.parse(await child.line()) as Answer;
  const opened = await answer();
  return {
    process: child,
    opened,
    tell(order) {
      child.say(JSON.stringify(order));
      return answer();
    },
    async tellAndStop(order) {
      child.say(JSON.stringify(order));
      const line = await child.line();
      if (line !== "stopped") throw new Error(`the process was to stop at ${JSON.stringify(order.stopAt)}: ${line}`);
    },
    goOn() {
      child.kill("SIGCONT");
      return answer();
    },
  };
}

/** The value of an answer that is no error. */
export function ok(answer: Answer): Readonly<Record<string, unknown>> {
  if ("error" in answer) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer.ok;
}

/** The error of an answer that has to be one. */
export function refusal(answer: Answer): {
  readonly code: string;
  readonly message: string;
  readonly details: unknown;
} {
  if ("ok" in answer) throw new Error(`no error but ${JSON.stringify(answer.ok)}`);
  return answer.error;
}
