/**
 * What changed between the manifest a session was stored with and the one it is resumed with (R5). Pure, and total: the
 * stored one may come from any release, or be damaged, so it is read as any JSON. Of two manifests of rigs that differ, some
 * change is always told.
 */
import { canonicalJson } from "../core/index.js";
import type { Json } from "../core/index.js";
import type { DriftChange, DriftSeverity } from "../session/index.js";

/**
 * The changes, those of the placement first. Breaking: the placement's mode, a fixed root, a loop that is gone and that the
 * session uses. `usedLoops` names the loops that were started in it; not told, every stored loop counts as used.
 */
export function compareManifests(stored: Json, live: Json, usedLoops?: readonly string[]): readonly DriftChange[] {
  const [before, after] = [membersOf(stored), membersOf(live)];
  return [
    ...comparePlacements(before.get("placement"), after.get("placement")),
    ...compareLoops(before.get("loops"), after.get("loops"), usedLoops),
    ...namesOf(before, after)
      .filter((name) => name !== "placement" && name !== "loops")
      .flatMap((name) => changeOf(name, before.get(name), after.get(name), "notable")),
  ];
}

function comparePlacements(stored: Json | undefined, live: Json | undefined): readonly DriftChange[] {
  const [before, after] = [membersOf(stored), membersOf(live)];
  const otherMode = differ(before.get("mode"), after.get("mode"));
  const breaking: readonly string[] = ["mode", "root"];
  return (
    namesOf(before, after)
      // A root and a base directory are not a change of one into the other: the mode says it.
      .filter((name) => !otherMode || name === "mode" || (before.has(name) && after.has(name)))
      .flatMap((name) =>
        changeOf(
          `placement.${name}`,
          before.get(name),
          after.get(name),
          breaking.includes(name) ? "breaking" : "notable",
        ),
      )
  );
}

function compareLoops(
  stored: Json | undefined,
  live: Json | undefined,
  usedLoops: readonly string[] | undefined,
): readonly DriftChange[] {
  const [before, after] = [membersOf(stored), membersOf(live)];
  return namesOf(before, after).flatMap((name) => {
    const field = `loops.${name}`;
    if (!before.has(name)) return changeOf(field, undefined, after.get(name), "notable");
    if (!after.has(name)) {
      const used = usedLoops === undefined || usedLoops.includes(name);
      return changeOf(field, before.get(name), undefined, used ? "breaking" : "notable");
    }
    const [ours, theirs] = [membersOf(before.get(name)), membersOf(after.get(name))];
    return namesOf(ours, theirs).flatMap((member) =>
      changeOf(`${field}.${member}`, ours.get(member), theirs.get(member), "notable"),
    );
  });
}

function changeOf(
  field: string,
  stored: Json | undefined,
  live: Json | undefined,
  severity: DriftSeverity,
): readonly DriftChange[] {
  if (!differ(stored, live)) return [];
  return [Object.freeze({ field, stored: stored ?? null, live: live ?? null, severity })];
}

const differ = (a: Json | undefined, b: Json | undefined): boolean =>
  canonicalJson(a ?? null) !== canonicalJson(b ?? null);

/** The members of an object; none of anything else. A map, since a stored name may be `__proto__`. */
function membersOf(json: Json | undefined): ReadonlyMap<string, Json> {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return new Map();
  return new Map(Object.entries(json).filter((entry): entry is [string, Json] => entry[1] !== undefined));
}

const namesOf = (a: ReadonlyMap<string, Json>, b: ReadonlyMap<string, Json>): readonly string[] =>
  [...new Set([...a.keys(), ...b.keys()])].sort();
