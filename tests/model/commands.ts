/**
 * What is done to a root in a run, as data: fast-check makes sequences of it, prints the one that failed and makes it
 * smaller. Numbers choose among what there is at that moment, so that a shorter sequence still makes sense.
 */
import fc from "fast-check";
import type { Edit, Node } from "./nodes.js";
import type { HolderKind } from "./real.js";

/** A step of a loop's turn: a file tool, a tool that writes under its permit, or somebody else in the middle of the turn. */
export type TurnStep =
  | { readonly by: "tool"; readonly path: string; readonly bytes: string }
  | { readonly by: "window" | "outside"; readonly edits: readonly Edit[] };

interface Asked {
  readonly paths?: readonly string[] | undefined;
  readonly includeWindow?: boolean | undefined;
  /** By `plan` and `apply`; with an edit, somebody makes it in between. */
  readonly planned?: { readonly between?: Edit | undefined } | undefined;
}

export type Verb = Asked &
  (
    | { readonly kind: "undo"; readonly turn?: number | undefined; readonly onConflict: "stop" | "skip" }
    | { readonly kind: "redo"; readonly onConflict: "stop" | "skip" }
    | { readonly kind: "restore"; readonly ref: number; readonly exact: boolean }
  );

export type Command = { readonly who: number } & (
  | { readonly do: "outside"; readonly edits: readonly Edit[] }
  | { readonly do: "turn"; readonly steps: readonly TurnStep[] }
  | { readonly do: "program"; readonly edits: readonly Edit[] }
  | { readonly do: "shell"; readonly edits: readonly Edit[] }
  | { readonly do: "checkpoint" }
  | { readonly do: "verb"; readonly verb: Verb }
  | { readonly do: "copy"; readonly ref: number }
  | { readonly do: "look"; readonly ref: number }
  | { readonly do: "restart"; readonly how: "close" | "lose"; readonly as: HolderKind }
);

const paths = ["a", "A", "b", "d", "d/a", "d/b", "d/e", "d/e/x", "D", "w\udcff", "d/w\udcff"] as const;
const plain = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/x", "f/g"] as const;
const path = fc.constantFrom(...paths);
const bytes = fc.constantFrom("", "1", "2", "two lines\n", "\u00ff\u0000");

const node: fc.Arbitrary<Node> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("file"), bytes, mode: fc.constantFrom(0o644, 0o755, 0o400) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("directory"), mode: fc.constantFrom(0o755, 0o700, 0o555) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("link"), target: fc.constantFrom("a", "d", "../out", "no") }) },
);

export const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("put" as const), path, node }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete" as const), path }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("chmod" as const), path, mode: fc.constantFrom(0o755, 0o700, 0o600) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("rename" as const), path, to: path }) },
);
export const edits = fc.array(edit, { minLength: 1, maxLength: 3 });

const step: fc.Arbitrary<TurnStep> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      by: fc.constant("tool" as const),
      path: fc.constantFrom(...plain),
      bytes: fc.constantFrom("t1\n", "t2\n", "1"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ by: fc.constantFrom("window" as const, "outside" as const), edits }) },
);

/** Absent four times of five. */
const seldom = <T>(what: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: what });

const onConflict = fc.constantFrom("stop" as const, "skip" as const, "skip" as const);
const chosen = seldom(fc.uniqueArray(path, { minLength: 1, maxLength: 2 }));
const consent = fc.constantFrom(true, true, true, undefined);
const between = fc.option(edit, { nil: undefined, freq: 2 });
const planned = seldom(fc.record({ between }));
const asked = { paths: chosen, includeWindow: consent, planned };
const some = fc.nat({ max: 40 });

const verb: fc.Arbitrary<Verb> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ kind: fc.constant("undo" as const), ...asked, onConflict },
      turn: seldom(some),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("redo" as const), includeWindow: consent, planned, onConflict }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...{ kind: fc.constant("restore" as const), ...asked, ref: some },
      exact: fc.constantFrom(false, false, true),
    }),
  },
);

type WithoutWho = Command extends infer C ? (C extends Command ? Omit<C, "who"> : never) : never;

const deed = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("outside" as const), edits }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("turn" as const),
      steps: fc.array(step, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("program" as const), edits }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("checkpoint" as const) }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant("verb" as const), verb }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("copy" as const), ref: some }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("look" as const), ref: some }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("restart" as const),
      how: fc.constantFrom("close" as const, "lose" as const),
      as: fc.constantFrom<HolderKind[]>("workspace", "session", "resume"),
    }),
  },
) as fc.Arbitrary<WithoutWho>;

/** A shell of its own costs as much as all the rest of a run; they come seldom. */
const shell = fc.record({ do: fc.constant("shell" as const), edits });

const withWho = (what: fc.Arbitrary<WithoutWho>): fc.Arbitrary<Command> =>
  fc.tuple(fc.nat({ max: 1 }), what).map(([who, rest]) => ({ who, ...rest }));

export const commands = (maxLength: number): fc.Arbitrary<readonly Command[]> =>
  fc.array(withWho(deed), { minLength: 3, maxLength, size: "max" });

/** With at least one shell. */
export const commandsWithShells = (maxLength: number): fc.Arbitrary<readonly Command[]> =>
  fc
    .tuple(
      withWho(shell),
      fc.array(withWho(fc.oneof({ weight: 4, arbitrary: deed }, { weight: 1, arbitrary: shell })), {
        ...{ minLength: 2, maxLength },
        size: "max",
      }),
    )
    .map(([first, rest]) => [first, ...rest]);
