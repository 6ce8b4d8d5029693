/** Sessions by the beginnings of their ids: four characters or more, as many as it takes to tell them apart. */
import { LooprigError } from "../core/index.js";
import type { SessionId } from "../core/index.js";

const least = 4;

/** Names each of `ids` by its shortest unique beginning. An id that is not among them gets the least length. */
export function sessionNames(ids: readonly SessionId[]): (id: SessionId) => string {
  const sorted = [...new Set(ids)].sort();
  const names = new Map<SessionId, string>();
  sorted.forEach((id, i) => {
    const shared = Math.max(sharedLength(id, sorted[i - 1] ?? ""), sharedLength(id, sorted[i + 1] ?? ""));
    names.set(id, id.slice(0, Math.max(least, shared + 1)));
  });
  return (id) => names.get(id) ?? id.slice(0, least);
}

/** The one session whose id begins with `given`. `session.unknown`, `session.ambiguous`. */
export function findSession(given: string, ids: readonly SessionId[]): SessionId {
  const fitting = given.length < least ? [] : ids.filter((id) => id.startsWith(given));
  const [only] = fitting;
  if (only === undefined) {
    const why =
      given.length < least ? `wanted ${least} or more characters of an id` : "no session here has an id like it";
    throw new LooprigError(
      "session.unknown",
      `Cannot find a session ${JSON.stringify(given)}: ${why}`,
      { given },
      { hint: "looprig sessions" },
    );
  }
  if (fitting.length > 1) {
    throw new LooprigError(
      "session.ambiguous",
      `Cannot tell which session ${JSON.stringify(given)} is: ${fitting.length} begin like that; write more of it`,
      { given, candidates: fitting },
      { hint: "looprig sessions" },
    );
  }
  return only;
}

function sharedLength(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return i;
}
