/** `looprig verify`: what was read, and what of it is damaged, by path. Pure. */
import { displayName } from "../core/index.js";
import type { SnapshotRef } from "../core/index.js";
import type { VerifyDamage, VerifyReport } from "../workspace-store/index.js";
import { bytes, count, number } from "./amounts.js";
import { columns } from "./columns.js";
import { numbersOf, treeNames } from "./pin-names.js";
import type { PinnedTree } from "./pin-names.js";
import { displayRoot } from "./spelling.js";
import type { Style } from "./style.js";

export interface VerifyData {
  readonly report: VerifyReport;
  /** What was verified, by the names it has. */
  readonly trees: readonly PinnedTree[];
  /** The root it speaks of; undefined for the whole store. */
  readonly root: string | undefined;
}

export interface VerifyView {
  readonly home: string;
  readonly style: Style;
}

/** Damaged rows of one root; a path may stand in several roots. */
interface DamagedAt {
  readonly root: string | undefined;
  readonly damage: VerifyDamage;
  readonly trees: readonly PinnedTree[];
}

export function verifyText({ report, trees, root }: VerifyData, view: VerifyView): string {
  const { home, style } = view;
  const where = style.bold(root === undefined ? "all roots" : displayRoot(root, home));
  const refs = new Set(trees.map(({ ref }) => ref));
  const read = `${count(refs.size, "tree")}, ${count(report.objects, "object")}, ${bytes(report.bytes)} read`;
  if (report.damaged.length === 0) return `${where}   ${read}: sound\n`;

  const rows = damagedByRoot(report, trees);
  const broken = new Set(report.damaged.flatMap((each) => each.refs));
  const lines = [`${where}   ${read}: ${style.red(`${count(rows.length, "path")} damaged`)}`];
  const shown = rows.slice(0, listedMax);
  let above: string | undefined | null = root ?? null;
  for (const at of groups(shown)) {
    lines.push("");
    if (at.root !== above)
      lines.push(at.root === undefined ? "of no session that is there" : displayRoot(at.root, home));
    above = at.root;
    lines.push(
      ...columns(
        at.rows.map((row) => cells(row, style)),
        { indent: "  " },
      ),
    );
  }
  if (rows.length > shown.length) lines.push("", `… and ${number(rows.length - shown.length)} more; --json lists all`);
  lines.push("", ...advice({ report, trees, root }, broken));
  return lines.map((line) => `${line}\n`).join("");
}

const listedMax = 50;

const cells = ({ damage, trees }: DamagedAt, style: Style) => [
  damage.path === undefined ? "everything" : damage.path === "" ? "./" : displayName(damage.path),
  { text: damage.problem, paint: style.red },
  treeNames(trees),
];

function damagedByRoot({ damaged }: VerifyReport, trees: readonly PinnedTree[]): readonly DamagedAt[] {
  const byRef = new Map<SnapshotRef, PinnedTree[]>();
  for (const tree of trees) byRef.set(tree.ref, [...(byRef.get(tree.ref) ?? []), tree]);
  return damaged.flatMap((damage) => {
    const found = damage.refs.flatMap((ref) => byRef.get(ref) ?? []);
    const roots = [...new Set(found.map(({ root }) => root))];
    return roots.map((root) => ({ root, damage, trees: found.filter((tree) => tree.root === root) }));
  });
}

function groups(
  rows: readonly DamagedAt[],
): readonly { readonly root: string | undefined; readonly rows: DamagedAt[] }[] {
  const byRoot = new Map<string | undefined, DamagedAt[]>();
  for (const row of rows) byRoot.set(row.root, [...(byRoot.get(row.root) ?? []), row]);
  return [...byRoot].map(([root, of]) => ({ root, rows: of }));
}

/** Nothing mends bytes that are gone; what there is to do is to know what is left, and to take a good copy where there is one. */
function advice({ trees, root }: VerifyData, broken: ReadonlySet<SnapshotRef>): readonly string[] {
  const all = new Set(trees.map(({ ref }) => ref)).size;
  const whole = all - broken.size;
  const newest = Math.max(0, ...numbersOf(trees.filter(({ ref }) => broken.has(ref))));
  const mend: (readonly [string, string])[] = [
    ...(newest === 0 || root === undefined
      ? []
      : [[`looprig restore c${newest} -- PATH`, "brings back single paths that are whole"] as const]),
    ["looprig doctor", "looks for why: a disk that is failing or full, files that were removed"],
  ];
  return [
    `${whole === 0 ? "None" : number(whole)} of ${count(all, "tree")} ${whole === 1 ? "is" : "are"} whole. Damaged bytes are never restored; a copy of the state directory may still have them.`,
    ...columns(mend, { indent: "  ", gap: "     " }),
  ];
}

/** The fields of `looprig.verify/1`. */
export const verifyDocument = ({ report, trees }: VerifyData): object => ({
  sound: report.damaged.length === 0,
  trees: new Set(trees.map(({ ref }) => ref)).size,
  objects: report.objects,
  bytes: report.bytes,
  damaged: damagedByRoot(report, trees).map(({ root, damage, trees: of }) => ({
    ...{ path: damage.path ?? null, problem: damage.problem, object: damage.object, root: root ?? null },
    checkpoints: numbersOf(of).map((each) => `c${each}`),
    refs: [...new Set(of.map(({ ref }) => ref))],
  })),
});
