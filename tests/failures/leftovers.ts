/** Where files of a state directory wait to be published, or are kept to look up stamps. */
import fs from "node:fs";
import path from "node:path";
import type { Place } from "./operations.js";

export const leftovers = ({ stateDir }: Pick<Place, "stateDir">): readonly string[] =>
  ["tmp", "spool"].flatMap((part) => fs.readdirSync(path.join(stateDir, part), { recursive: true, encoding: "utf8" }));
