/**
 * Reads a file over and over until it hears something on standard input, and then says how often it read and how often it
 * found another number of lines than the second argument, or a last line without its end.
 */
import fs from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";

const [file = "", wanted = ""] = process.argv.slice(2);
const heard = new AbortController();
process.stdin.once("data", () => heard.abort());
process.stdout.write("reading\n");
let reads = 0;
let partial = 0;
while (!heard.signal.aborted) {
  const text = fs.readFileSync(file, "utf8");
  reads++;
  if (text.split("\n").length !== Number(wanted) + 1 || !text.endsWith("\n")) partial++;
  await nextTurn();
}
process.stdout.write(`${JSON.stringify({ reads, partial })}\n`, () => process.exit(0));
