import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PersistenceOverlapError } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { canonicalPath } from "./canonical-path.js";
import { assertOutside } from "./persistence-boundary.js";

let dir: string;
beforeEach(() => {
  dir = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
  fs.mkdirSync(path.join(dir, "region/sub"), { recursive: true });
  fs.symlinkSync("region", path.join(dir, "link"));
  fs.symlinkSync("region/later", path.join(dir, "dangling"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

describe("state inside the captured region", () => {
  test.each([
    "region",
    "region/",
    "region/sub",
    "region/not/yet/there",
    "link",
    "link/new",
    "dangling",
    "link/../region/x",
  ])("%s is refused", (state) => {
    const region = canonicalPath(path.join(dir, "link"));
    const outside = path.join(dir, "fine");
    expect(() => assertOutside([outside, `${dir}/${state}`], region)).toThrow(PersistenceOverlapError);
    expect(() => assertOutside([`${dir}/${state}`], region)).toThrow(
      expect.objectContaining({
        code: "persistence.overlap",
        details: { persistencePath: canonicalPath(`${dir}/${state}`), root: region },
      }),
    );
  });

  test("is found when the region does not exist yet", () => {
    expect(() =>
      assertOutside([path.join(dir, "link/new/state")], canonicalPath(path.join(dir, "region/new"))),
    ).toThrow(PersistenceOverlapError);
  });

  test("is everything where the region is the root of the file system", () => {
    expect(() => assertOutside([dir], "/" as CanonicalRoot)).toThrow(PersistenceOverlapError);
  });
});

test.each([[""], ["sibling"], ["region-state"], ["regio"], ["region/../state"]])(
  "state above or beside the region (%j) is fine",
  (state) => {
    assertOutside([`${dir}/${state}`], canonicalPath(path.join(dir, "region")));
  },
);

test("stores that keep nothing on this machine are fine", () => {
  assertOutside([], "/" as CanonicalRoot);
});
