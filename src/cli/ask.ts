/** Asks on the terminal: the question on stderr, the answer from stdin. */
import { choices, readAnswer } from "./consent.js";
import type { Question } from "./consent.js";
import type { Context } from "./context.js";

const attemptsMax = 3;

/** Needs `context.canAsk`. An answer that is none is asked for again, and after three times counts as no. */
export async function ask(context: Context, question: Question): Promise<boolean> {
  const { stdin, stderr } = context.environment;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    await stderr.write(`${question.text} ${choices(question)} `);
    const line = await stdin.readLine(context.signal);
    // The end of input left the cursor behind the question.
    if (line === undefined) await stderr.write("\n");
    const answer = readAnswer(line, question);
    if (answer !== undefined) return answer === "yes";
  }
  return false;
}

/** One of `letters`, or undefined at the end of input or after three answers that are none of them. */
export async function askLetter<L extends string>(
  context: Context,
  text: string,
  letters: readonly L[],
): Promise<L | undefined> {
  const { stdin, stderr } = context.environment;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    await stderr.write(`${text} `);
    const line = await stdin.readLine(context.signal);
    if (line === undefined) {
      await stderr.write("\n");
      return undefined;
    }
    const answer = letters.find((letter) => letter === line.trim().toLowerCase().slice(0, 1));
    if (answer !== undefined) return answer;
  }
  return undefined;
}
