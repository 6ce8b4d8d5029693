/** What stands on disk, for saying that something was not touched at all. */
import fs from "node:fs";
import path from "node:path";

/** Every entry below `dir` as `path → inode, modification and change time`: an untouched tree is equal in all of them. */
export function stamps(
  dir: string,
  leaveOut: (name: string) => boolean = () => false,
): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of fs.readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    if (leaveOut(name)) continue;
    const { ino, mtimeNs, ctimeNs } = fs.lstatSync(path.join(dir, name), { bigint: true });
    found[name] = `${ino} ${mtimeNs} ${ctimeNs}`;
  }
  return found;
}

export const isIn = (name: string, dir: string): boolean => name === dir || name.startsWith(`${dir}/`);
export const isGit = (name: string): boolean => name.split("/").includes(".git");

/** The part of a listing for which `keep` says so. */
export const only = (
  tree: Readonly<Record<string, string>>,
  keep: (name: string) => boolean,
): Readonly<Record<string, string>> => Object.fromEntries(Object.entries(tree).filter(([name]) => keep(name)));

/** Regular files below `dir`, as absolute paths. */
export const filesBelow = (dir: string): string[] =>
  fs
    .readdirSync(dir, { recursive: true, encoding: "utf8" })
    .map((name) => path.join(dir, name))
    .filter((file) => fs.lstatSync(file).isFile())
    .sort();
