/** The snapshot store: packs and their indexes by name, pins by their bytes. Content is `looprig verify`'s to read. */
import type { Abortable } from "../../core/index.js";
import type { Storage } from "../../storage/index.js";
import { bareBytesMax } from "../../workspace-store/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { count } from "../amounts.js";
import { note, problem } from "./finding.js";
import type { Finding } from "./finding.js";

export interface StoreSize {
  readonly bytes: number;
  readonly packs: number;
}

export async function packFindings(
  { blobs }: Pick<Storage, "blobs">,
  options: Abortable,
): Promise<{ readonly size: StoreSize; readonly findings: readonly Finding[] }> {
  let bytes = 0;
  const sizes = async (prefix: string): Promise<ReadonlyMap<string, number>> => {
    const found = new Map<string, number>();
    for await (const { key, size } of blobs.list(prefix, options)) {
      bytes += size;
      found.set(key.slice(prefix.length), size);
    }
    return found;
  };
  // Indexes first: a pack that is published in between is then no pack without one.
  const indexes = await sizes("index/");
  const packs = await sizes("packs/");
  const bare = [...packs].filter(([id, size]) => size > bareBytesMax && !indexes.has(id)).length;
  const astray = [...indexes.keys()].filter((id) => !packs.has(id)).length;
  return {
    size: { bytes, packs: packs.size },
    findings: [
      ...(bare === 0
        ? []
        : [
            note(
              "packs",
              `${count(bare, "pack")} without an index; whoever needs ${bare === 1 ? "it" : "them"} makes it anew`,
            ),
          ]),
      ...(astray === 0
        ? []
        : [
            problem(
              "packs",
              `${count(astray, "pack")} ${astray === 1 ? "is" : "are"} gone and left an index: something else removed files of the store`,
              "looprig verify --all",
            ),
          ]),
    ],
  };
}

/** A pin that cannot be read is thrown by the listing, and told as that. */
export async function pinFindings(
  store: WorkspaceStore,
  sessions: ReadonlySet<string>,
  options: Abortable,
): Promise<readonly Finding[]> {
  const pins = await store.pins(options);
  const lost = new Set(pins.filter(({ owner }) => isSession(owner) && !sessions.has(owner)).map(({ owner }) => owner));
  return lost.size === 0
    ? []
    : [
        note(
          "pins",
          `trees are kept for ${count(lost.size, "session")} that ${lost.size === 1 ? "is" : "are"} not there: a deletion was cut short, or the database is older than the packs`,
        ),
      ];
}

const isSession = (owner: string): boolean => /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(owner);
