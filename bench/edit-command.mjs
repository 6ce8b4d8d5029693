// The command that subjects with turns run as one: `node edit-command.mjs TREE.json SALT`.
import fs from "node:fs";
import { editTwelve } from "./edits.mjs";

const [description, salt] = process.argv.slice(2);
editTwelve(JSON.parse(fs.readFileSync(description, "utf8")), salt);
