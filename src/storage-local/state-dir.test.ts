import { expect, test } from "vitest";
import { defaultStateDir } from "./state-dir.js";

test("LOOPRIG_HOME is taken as it is, on every platform", () => {
  const environment = { LOOPRIG_HOME: "/srv/rig", XDG_STATE_HOME: "/x" };
  expect(defaultStateDir(environment, "linux", "/home/u")).toBe("/srv/rig");
  expect(defaultStateDir(environment, "darwin", "/Users/u")).toBe("/srv/rig");
});

test("on Linux it is in XDG_STATE_HOME, or where that is by default", () => {
  expect(defaultStateDir({ XDG_STATE_HOME: "/x" }, "linux", "/home/u")).toBe("/x/looprig");
  expect(defaultStateDir({}, "linux", "/home/u")).toBe("/home/u/.local/state/looprig");
});

test("on macOS it is in Application Support, whatever XDG says", () => {
  expect(defaultStateDir({ XDG_STATE_HOME: "/x" }, "darwin", "/Users/u")).toBe(
    "/Users/u/Library/Application Support/looprig",
  );
});

test("empty and relative variables count as absent", () => {
  expect(defaultStateDir({ LOOPRIG_HOME: "", XDG_STATE_HOME: "" }, "linux", "/home/u")).toBe(
    "/home/u/.local/state/looprig",
  );
  expect(defaultStateDir({ XDG_STATE_HOME: "state" }, "linux", "/home/u")).toBe("/home/u/.local/state/looprig");
});
