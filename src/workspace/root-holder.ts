import type { Abortable, LeaseHolder } from "../core/index.js";
import { foldedSpelling } from "./name-folding.js";
import type { RootReader } from "./root-reader.js";

/** Who has the root, or one above or below it, for writing now; the root's own holder first. */
export async function holderOf(
  reader: RootReader,
  options: Abortable = {},
): Promise<(LeaseHolder & { readonly root: string }) | undefined> {
  const ours = foldedSpelling(reader.fileSystem, reader.root);
  const held = (await reader.storage.leaser.list("workspace-roots/", options)).flatMap(({ holder, subject }) =>
    subject === undefined ? [] : [{ ...holder, root: subject, folded: foldedSpelling(reader.fileSystem, subject) }],
  );
  const found =
    held.find(({ folded }) => folded === ours) ??
    held.find(({ folded }) => folded.startsWith(`${ours}/`) || ours.startsWith(folded === "/" ? "/" : `${folded}/`));
  if (found === undefined) return undefined;
  const { folded: _folded, ...holder } = found;
  return holder;
}
