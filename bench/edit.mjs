// A command that edits a generated tree: `node edit.mjs ROOT SALT`. What the subjects of the benchmark run as a turn.
import fs from "node:fs";
import path from "node:path";
import { editTree } from "./tree.mjs";

const [root, salt] = process.argv.slice(2);
const paths = JSON.parse(fs.readFileSync(path.join(path.dirname(root), "paths.json"), "utf8"));
editTree(root, paths, salt);
