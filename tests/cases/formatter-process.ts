/**
 * A formatter that works behind everybody's back, as an editor's or a hook's does: it watches the directory of a file and
 * rewrites the file whenever it is not formatted. Prints "watching", and then each text it wrote as a line of JSON.
 *
 * argv: file, pattern, replacement (of a regular expression, on every line)
 */
import fs from "node:fs";
import path from "node:path";

const [file = "", pattern = "", replacement = ""] = process.argv.slice(2);
const unformatted = new RegExp(pattern, "gm");

function format(): void {
  const text = fs.readFileSync(file, "utf8");
  const formatted = text.replaceAll(unformatted, replacement);
  if (formatted === text) return;
  fs.writeFileSync(file, formatted);
  fs.writeSync(1, `${JSON.stringify(formatted)}\n`);
}

// The name may be gone for a moment: whoever replaces it is heard again.
fs.watch(path.dirname(file), () => {
  if (fs.existsSync(file)) format();
});
process.stdin.once("end", () => process.exit(0)).resume();
fs.writeSync(1, "watching\n");
