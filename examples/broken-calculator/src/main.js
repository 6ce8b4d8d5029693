#!/usr/bin/env node
import { evaluate } from "./evaluate.js";
import { format } from "./format.js";
import { parse } from "./parse.js";
import { round } from "./round.js";

try {
  console.log(format(round(evaluate(parse(process.argv.slice(2).join(" "))))));
} catch (error) {
  console.error(`calc: ${error.message}`);
  process.exitCode = 1;
}
