/**
 * Which root a command speaks of: `--root`, else the nearest known directory at or above the current one, else the current
 * one. Pure; all paths are canonical.
 */

import { shellWord } from "./spelling.js";

export interface RootChoice {
  readonly root: string;
  /** Whether looprig has a history of it. */
  readonly known: boolean;
  /** Set when the root was found above the current directory: people should be told which one it is. */
  readonly foundAbove: boolean;
  /** Known directories elsewhere on the same line, for a root that has no history: nearest above, and below, last used first. */
  readonly above?: string;
  readonly below: readonly string[];
}

export interface KnownRoot {
  readonly root: string;
  readonly lastAt: Date;
}

export function chooseRoot(given: string | undefined, here: string, known: readonly KnownRoot[]): RootChoice {
  const nearestAbove = (path: string): string | undefined =>
    known
      .map(({ root }) => root)
      .filter((root) => isAtOrBelow(path, root))
      .sort((a, b) => b.length - a.length)[0];

  const root = given ?? nearestAbove(here) ?? here;
  const above = known
    .map((each) => each.root)
    .filter((each) => each !== root && isAtOrBelow(root, each))
    .sort((a, b) => b.length - a.length)[0];
  const below = known
    .filter((each) => each.root !== root && isAtOrBelow(each.root, root))
    .sort((a, b) => b.lastAt.getTime() - a.lastAt.getTime())
    .map((each) => each.root);
  return {
    root,
    known: known.some((each) => each.root === root),
    foundAbove: given === undefined && root !== here,
    ...(above === undefined ? {} : { above }),
    below,
  };
}

/** The sentence for a root without a history, naming where there is one. */
export function withoutHistory(choice: RootChoice, display: (root: string) => string): string {
  const root = display(choice.root);
  const [first] = choice.below;
  const elsewhere =
    choice.above !== undefined
      ? `; it has one of ${display(choice.above)} above it`
      : first === undefined
        ? ""
        : `; it has one of ${display(first)} below it${choice.below.length > 1 ? ` and of ${choice.below.length - 1} more` : ""}`;
  return `looprig has no history of ${root}${elsewhere}`;
}

/** What to type next about a root without a history. */
export function withoutHistoryHint(choice: RootChoice): string {
  const other = choice.above ?? choice.below[0];
  return other === undefined ? "looprig exec -- <command>" : `--root ${shellWord(other)}`;
}

const isAtOrBelow = (path: string, ancestor: string): boolean =>
  path === ancestor || path.startsWith(ancestor.endsWith("/") ? ancestor : `${ancestor}/`);
