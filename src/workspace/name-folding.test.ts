/** Volumes that fold names, played by a file system seam over a directory that does not. */
import fs from "node:fs";
import os from "node:os";
import nodePath from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import type { FileSystem, FsPath } from "../core/index.js";
import { canonicalPath } from "./canonical-path.js";
import { foldedSpelling, foldingIn, foldName } from "./name-folding.js";
import type { NameFolding } from "./name-folding.js";
import { rootKey } from "./root-lease.js";

let dir: string;
beforeEach(() => {
  dir = fs.realpathSync.native(fs.mkdtempSync(nodePath.join(os.tmpdir(), "looprig-")));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

/** Below `region` names are looked up folded. `realpath` answers the stored spelling (as macOS does) or the given one (as Linux). */
function foldingFileSystem(region: string, folding: NameFolding, realpath: "stored" | "given"): FileSystem {
  const stored = (path: FsPath): string => {
    const text = String(path);
    if (!text.startsWith(`${region}/`)) return text;
    let found = region;
    for (const name of text.slice(region.length).split("/")) {
      if (name === "") continue;
      let listed: string[] = [];
      try {
        listed = fs.readdirSync(found);
      } catch {
        // Not a directory: the call itself says so.
      }
      found = `${found}/${listed.find((other) => foldName(other, folding) === foldName(name, folding)) ?? name}`;
    }
    return found;
  };
  return {
    ...nodeFileSystem,
    lstat: (path) => nodeFileSystem.lstat(stored(path)),
    stat: (path) => nodeFileSystem.stat(stored(path)),
    readdir: (path) => nodeFileSystem.readdir(stored(path)),
    readlink: (path) => nodeFileSystem.readlink(stored(path)),
    realpath: (path) => {
      const real = nodeFileSystem.realpath(stored(path));
      return realpath === "stored" || real !== stored(path) ? real : path;
    },
    mkdir: (path, mode) => nodeFileSystem.mkdir(stored(path), mode),
  };
}

const both: NameFolding = { case: true, composition: true };

describe.each(["stored", "given"] as const)(
  "on a volume that folds, where realpath answers the %s spelling",
  (realpath) => {
    test("C094: every spelling of what exists is the stored one, and has the same key", () => {
      fs.mkdirSync(nodePath.join(dir, "Project/Sub Dir/Caf\u00e9"), { recursive: true });
      const fileSystem = foldingFileSystem(dir, both, realpath);
      const wanted = `${dir}/Project/Sub Dir/Caf\u00e9`;
      for (const spelling of ["Project/Sub Dir/Caf\u00e9", "project/sub dir/cafe\u0301", "PROJECT/SUB DIR/CAF\u00c9"]) {
        expect(canonicalPath(`${dir}/${spelling}`, { fileSystem })).toBe(wanted);
      }
      expect(foldedSpelling(fileSystem, wanted)).toBe(`${dir}/project/sub dir/caf\u00e9`);
    });

    test("C094: every spelling of what does not exist yet is one, and keeps its key when it is made", () => {
      fs.mkdirSync(nodePath.join(dir, "Base"));
      const fileSystem = foldingFileSystem(dir, both, realpath);
      const spellings = ["Base/New/File", "base/new/file", "BASE/NEW/FILE"].map((name) =>
        canonicalPath(`${dir}/${name}`, { fileSystem }),
      );
      expect(new Set(spellings)).toEqual(new Set([`${dir}/Base/new/file`]));
      const [spelling] = spellings as [(typeof spellings)[number]];
      const before = rootKey(spelling, fileSystem);
      // Somebody else makes it, in a spelling of their own.
      fs.mkdirSync(`${dir}/Base/NEW/File`, { recursive: true });
      const after = canonicalPath(spelling, { fileSystem });
      expect(after).toBe(`${dir}/Base/NEW/File`);
      expect(rootKey(after, fileSystem)).toBe(before);
      fs.rmSync(`${dir}/Base/NEW`, { recursive: true });
      expect(rootKey(after, fileSystem)).toBe(before);
    });
  },
);

describe("whether a directory folds", () => {
  test("is seen from the names in it, else from its own, and not taken from another volume's behaviour", () => {
    fs.mkdirSync(nodePath.join(dir, "Empty"));
    fs.mkdirSync(nodePath.join(dir, "123"));
    const fileSystem = foldingFileSystem(dir, both, "given");
    expect(foldingIn(fileSystem, dir)).toEqual(both);
    expect(foldingIn(fileSystem, `${dir}/Empty`)).toEqual(both);
    expect(foldingIn(fileSystem, `${dir}/123`)).toEqual(both);
    expect(foldingIn(nodeFileSystem, dir)).toEqual({ case: false, composition: false });
    // What is not below the folding region is on a volume that does not fold.
    expect(foldingIn(fileSystem, os.tmpdir()).case).toBe(false);
  });

  test("tells folding of composition alone from folding of case", () => {
    fs.mkdirSync(nodePath.join(dir, "Caf\u00e9"));
    const fileSystem = foldingFileSystem(dir, { case: false, composition: true }, "given");
    expect(foldingIn(fileSystem, dir)).toEqual({ case: false, composition: true });
    expect(canonicalPath(`${dir}/Cafe\u0301/New`, { fileSystem })).toBe(`${dir}/Caf\u00e9/New`);
  });

  test("is not concluded from two names of one file", () => {
    fs.writeFileSync(nodePath.join(dir, "Readme"), "");
    fs.linkSync(nodePath.join(dir, "Readme"), nodePath.join(dir, "readme"));
    expect(foldingIn(nodeFileSystem, dir).case).toBe(false);
    expect(canonicalPath(nodePath.join(dir, "readme"))).toBe(nodePath.join(dir, "readme"));
  });
});

test("on a volume that does not fold, spellings stay apart and keys are of the path as it stands", () => {
  fs.mkdirSync(nodePath.join(dir, "A"));
  fs.mkdirSync(nodePath.join(dir, "a"));
  for (const spelling of [`${dir}/A`, `${dir}/a`, `${dir}/A/New`, `${dir}/NEW`]) {
    expect(canonicalPath(spelling)).toBe(spelling);
    expect(foldedSpelling(nodeFileSystem, spelling)).toBe(spelling);
  }
});

test("a path that leads through a file, or nowhere, has a key all the same", () => {
  fs.writeFileSync(nodePath.join(dir, "File"), "");
  for (const path of [`${dir}/File/Below/Deep`, `${dir}/Gone/Deep`]) {
    expect(foldedSpelling(nodeFileSystem, path)).toBe(path);
  }
});

test("a folded name is folded for good, and shared by the spellings it stands for", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (name) => {
      const folded = foldName(name, both);
      expect(foldName(folded, both)).toBe(folded);
      expect(foldName(name.normalize("NFD"), both)).toBe(foldName(name.normalize("NFC"), both));
    }),
  );
});
