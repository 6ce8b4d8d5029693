/**
 * What has to be asked before files change, and which answer is the default. Pure: the plan and the wish in, the question
 * out. The default is yes only for taking back, or putting back, exactly what an entry did; whatever is wider defaults to no.
 */
import type { RestorePlan } from "../workspace/index.js";
import { countPaths } from "./render-plan.js";
import type { PathFacts } from "./render-plan.js";

export interface Question {
  readonly text: string;
  readonly default: "yes" | "no";
}

/** Above it nobody reads the list of paths before answering. */
const pathsMax = 100;

/** `plan` has something to do and no conflict that would stop it. */
export function questionFor(plan: RestorePlan, facts: PathFacts): Question {
  const wider =
    plan.action === "restore" ||
    plan.deletes.length > 0 ||
    plan.window.length > 0 ||
    // Skipped ones: another session's window overlaps, or somebody changed the path since.
    plan.conflicts.length > 0 ||
    plan.foreign.length > 0 ||
    plan.writes.length > pathsMax;
  return { text: `${deed(plan, facts)}?`, default: wider ? "no" : "yes" };
}

function deed(plan: RestorePlan, facts: PathFacts): string {
  const [write, remove] = plan.action === "redo" ? ["Put back", "delete"] : ["Restore", "delete"];
  const deletes = plan.deletes.length === 0 ? [] : [`${remove} ${countPaths(plan.deletes, facts)}`];
  const parts = [...(plan.writes.length === 0 ? [] : [`${write} ${countPaths(plan.writes, facts)}`]), ...deletes];
  const text = parts.join(" and ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `[Y/n]` or `[y/N]`, after the question. */
export const choices = (question: Question): string => (question.default === "yes" ? "[Y/n]" : "[y/N]");

/** What an answer means; undefined: not understood, ask again. The end of input is a no. */
export function readAnswer(line: string | undefined, question: Question): "yes" | "no" | undefined {
  if (line === undefined) return "no";
  const answer = line.trim().toLowerCase();
  if (answer === "") return question.default;
  if (answer === "y" || answer === "yes") return "yes";
  if (answer === "n" || answer === "no") return "no";
  return undefined;
}
