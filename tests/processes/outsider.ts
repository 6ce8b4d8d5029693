/**
 * Another program at work in a root that knows nothing of looprig. Reads one `Deed` as JSON a line, spins for as long as it
 * says, does it, and answers with one line, an `OutsiderAnswer`.
 */
import { createInterface } from "node:readline";
import fs from "node:fs";
import path from "node:path";

export interface Deed {
  readonly do: "edit" | "replace" | "create" | "delete" | "swap";
  readonly root: string;
  /** A file of the root; for `swap` one of its directories. */
  readonly name: string;
  /** Where a swapped directory leads from then on, and outside of the root. */
  readonly outside: string;
  readonly text: string;
  readonly spinUs: number;
}

export interface OutsiderAnswer {
  /** The code of what the system said, where it refused. */
  readonly failed?: string | undefined;
  /** What was written into had no name any more when it was written, or had lost it by the end. */
  readonly nameless?: boolean | undefined;
}

function edit(file: string, text: string): OutsiderAnswer {
  const fd = fs.openSync(file, "r+");
  try {
    fs.ftruncateSync(fd, 0);
    fs.writeSync(fd, text, 0);
    return { nameless: fs.fstatSync(fd).nlink === 0 };
  } finally {
    fs.closeSync(fd);
  }
}

function carryOut({ do: what, root, name, outside, text }: Deed): OutsiderAnswer {
  const file = path.join(root, name);
  switch (what) {
    case "edit":
      return edit(file, text);
    case "replace": {
      const own = path.join(outside, "..", "outsiders-own");
      fs.writeFileSync(own, text);
      fs.renameSync(own, file);
      return {};
    }
    case "create":
      fs.writeFileSync(file, text, { flag: "wx" });
      return {};
    case "delete":
      fs.unlinkSync(file);
      return {};
    case "swap":
      fs.renameSync(file, path.join(outside, "..", "swapped"));
      fs.symlinkSync(outside, file);
      return {};
    default:
      return what satisfies never;
  }
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const deed = JSON.parse(line) as Deed;
  const until = process.hrtime.bigint() + BigInt(deed.spinUs) * 1000n;
  while (process.hrtime.bigint() < until);
  let answer: OutsiderAnswer;
  try {
    answer = carryOut(deed);
  } catch (error) {
    answer = { failed: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
  console.log(JSON.stringify(answer));
}
