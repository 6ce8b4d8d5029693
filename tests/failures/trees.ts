/** The two trees between which the operations go, with every kind of change: small ones for the suite, large ones to be thorough. */
import { after, before } from "../../src/workspace/restore/testing/scenario.js";
import { directory, file, link } from "../../src/workspace/restore/testing/trees.js";
import type { Nodes } from "../../src/workspace/restore/testing/trees.js";

export interface TwoTrees {
  readonly first: Nodes;
  readonly second: Nodes;
}

/** One change of each kind. */
export const small: TwoTrees = {
  first: {
    "kept.txt": file("kept"),
    "kept-empty": directory(0o711),
    edited: file("first bytes"),
    deleted: file("deleted by the turn"),
    "mode.sh": file("#!/bin/sh\n", 0o644),
    "to-dir": file("a file"),
    "to-file": directory(0o700),
    "to-file/child": file("child"),
    "to-link": file("a file"),
    link: link("kept.txt"),
    "link-to-dir": link("nowhere"),
    "empty-gone": directory(),
    Name: file("a name"),
    "dir-mode": directory(0o755),
    tight: directory(0o500),
    "tight/goes": file("goes"),
    "bad\udcff \n name": file("odd, first", 0o600),
  },
  second: {
    "kept.txt": file("kept"),
    "kept-empty": directory(0o711),
    edited: file("other bytes, longer"),
    created: file("created by the turn", 0o640),
    "mode.sh": file("#!/bin/sh\n", 0o755),
    "to-dir": directory(0o500),
    "to-dir/inside": file("inside", 0o400),
    "to-file": file("a file now"),
    "to-link": link("kept.txt"),
    link: link("edited"),
    "link-to-dir": directory(),
    "empty-made": directory(0o750),
    NAME: file("a name"),
    "dir-mode": directory(0o700),
    tight: directory(0o500),
    "tight/comes": file("comes"),
    "bad\udcff \n name": file("odd, second", 0o600),
  },
};

/** Several of each kind, deeper and combined. */
export const large: TwoTrees = { first: before, second: after };
