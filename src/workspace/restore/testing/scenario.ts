/** Two trees between which every kind of change lies. For tests. */
import { directory, file, link } from "./trees.js";
import type { Nodes } from "./trees.js";

const odd = {
  newline: "a\nb",
  foreign: "bad\udcff name",
  spaces: " lead and trail ",
  quotes: 'q"\\\t',
  astral: "\u{1f600}.txt",
};

/** Stays as it is, in every respect. */
const same: Nodes = {
  "same.txt": file("same"),
  kept: directory(),
  "kept/inner.txt": file("inner"),
  "kept/to-inner": link("inner.txt"),
  "kept/empty": directory(0o711),
};

export const before: Nodes = {
  ...same,
  "replaced.txt": file("old bytes"),
  "deleted.txt": file("to be deleted"),
  "mode.sh": file("#!/bin/sh\n", 0o644),
  "replaced-and-mode": file("x", 0o600),
  "mode-linked": file("linked", 0o644),
  "mode-twin-a": file("twin", 0o600),
  "mode-twin-b": file("twin", 0o600),
  "file-to-dir": file("was a file"),
  "dir-to-file": directory(),
  "dir-to-file/child.txt": file("child"),
  "dir-to-file/deep": directory(0o700),
  "dir-to-file/deep/grandchild": file("grandchild"),
  "file-to-link": file("was a file"),
  "link-to-dir": link("kept"),
  "link-to-file": link("nowhere"),
  "link-to-link": link("a"),
  "dir-to-link": directory(),
  "dir-to-link/x": file("x"),
  "empty-gone": directory(),
  gone: directory(),
  "gone/a.txt": file("a"),
  "gone/b": directory(0o500),
  "gone/b/c.txt": file("c"),
  "mode-dir": directory(0o755),
  "mode-dir/in.txt": file("in"),
  tight: directory(0o500),
  "tight/old.txt": file("old in tight"),
  "tight/goes.txt": file("goes"),
  loosened: directory(0o500),
  "loosened/f": file("f"),
  Readme: file("readme"),
  [odd.newline]: file("newline old"),
  [odd.foreign]: file("foreign old"),
  [odd.spaces]: file("spaces"),
  chain1: file("one"),
  chain2: file("two"),
};

export const after: Nodes = {
  ...same,
  "replaced.txt": file("new bytes, longer"),
  "mode.sh": file("#!/bin/sh\n", 0o755),
  "replaced-and-mode": file("y", 0o640),
  "mode-linked": file("linked", 0o600),
  "mode-twin-a": file("twin", 0o666),
  "mode-twin-b": file("twin", 0o640),
  "added.txt": file("added"),
  "empty.txt": file(""),
  "new-link": link("kept/inner.txt"),
  "file-to-dir": directory(),
  "file-to-dir/inside": file("inside"),
  "dir-to-file": file("now a file"),
  "file-to-link": link("same.txt"),
  "link-to-dir": directory(0o750),
  "link-to-dir/real.txt": file("real"),
  "link-to-file": file("now a file"),
  "link-to-link": link("b"),
  "dir-to-link": link("kept"),
  "empty-new": directory(),
  fresh: directory(0o555),
  "fresh/deeper": directory(),
  "fresh/deeper/leaf": file("leaf", 0o400),
  "mode-dir": directory(0o500),
  "mode-dir/in.txt": file("in, edited"),
  tight: directory(0o500),
  "tight/old.txt": file("new in tight"),
  "tight/comes.txt": file("comes"),
  loosened: directory(0o755),
  "loosened/g": file("g"),
  README: file("readme"),
  [odd.newline]: file("newline new"),
  [odd.foreign]: file("foreign new"),
  [odd.quotes]: file("quotes"),
  [odd.astral]: file("astral"),
  chain2: file("one"),
  chain3: file("two"),
};

/** The files of `before` that have a second name, outside the root or in it. */
export const linked = ["mode-linked", ["mode-twin-a", "mode-twin-b"]] as const;

/** The same kinds of change, one of each, for tests that run very many times. */
export const smallBefore: Nodes = {
  "same.txt": file("same"),
  "replaced.txt": file("old"),
  "mode.sh": file("#!/bin/sh\n", 0o644),
  "mode-linked": file("linked", 0o644),
  "to-dir": file("file"),
  "to-file": directory(0o700),
  "to-file/child": file("child"),
  "to-link": file("file"),
  tight: directory(0o500),
  "tight/goes": file("goes"),
};
export const smallAfter: Nodes = {
  "same.txt": file("same"),
  "replaced.txt": file("new"),
  "mode.sh": file("#!/bin/sh\n", 0o755),
  "mode-linked": file("linked", 0o600),
  "to-dir": directory(0o500),
  "to-dir/inside": file("inside"),
  "to-file": file("file"),
  "to-link": link("same.txt"),
  tight: directory(0o755),
};
export const smallLinked = ["mode-linked"] as const;
