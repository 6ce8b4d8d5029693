/**
 * A real second process edits, replaces, creates, deletes and swaps a directory for a link while Write and Edit are at work,
 * at moments nobody chose. What it wrote is at its path, or kept where the answer says, and nothing lands outside the root
 * (C9, C10). A file that is put in the place of another in the one system call of the rename is the gap that is documented.
 * Some hundred rounds here; `LOOPRIG_SOAK=1` plays thousands.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { Deed, OutsiderAnswer } from "../../tests/processes/outsider.js";
import { startProcess } from "../../tests/processes.js";
import { ToolsOnDisk } from "./testing/tools-on-disk.js";

const rounds = process.env["LOOPRIG_SOAK"] === "1" ? 5_000 : 100;

const deeds = [
  { do: "edit", name: "dir/f" },
  { do: "create", name: "dir/new" },
  { do: "swap", name: "dir" },
  { do: "delete", name: "dir/f" },
] as const;

it("what another process writes meanwhile survives or is told, and no tool writes outside the root", async () => {
  const outsider = startProcess("tests/processes/outsider.ts");
  expect(await outsider.line()).toBe("ready");
  let usual = 3_000;
  const met = { refused: 0, survived: 0, kept: 0 };
  for (let round = 0; round < rounds; round++) {
    using disk = new ToolsOnDisk();
    const tools = await disk.loop();
    disk.write("dir/f", "one\ntwo\n");
    const outside = path.join(disk.dir, "outside");
    fs.mkdirSync(outside);
    fs.writeFileSync(path.join(outside, "f"), "one\ntwo\n");
    await tools.call("Read", { file_path: "dir/f" });
    const chosen = deeds[round % deeds.length] as (typeof deeds)[number];
    const text = `one\ntyped in round ${round}\n`;
    const spinUs = Math.round(usual * 1.2 * ((round * 0.618) % 1));
    outsider.say(JSON.stringify({ ...chosen, root: disk.root, outside, text, spinUs } satisfies Deed));
    const begun = performance.now();
    const calls = [
      ["Edit", { file_path: "dir/f", old_string: "one", new_string: "ONE" }],
      ["Write", { file_path: "dir/new", content: "made\n" }],
    ] as const;
    const answers: string[] = [];
    for (const [name, input] of calls) {
      const answer = await tools.call(name, input).then(
        (result) => result.text,
        (error: unknown) => {
          met.refused++;
          return `${String(error)} ${JSON.stringify(error)}`;
        },
      );
      answers.push(answer);
    }
    usual = (usual * 7 + (performance.now() - begun) * 1000) / 8;
    const { failed, nameless } = JSON.parse(await outsider.line()) as OutsiderAnswer;
    const moment = `round ${round}, ${chosen.do}: ${failed ?? "done"}; ${answers.join(" | ")}`;

    expect(fs.readdirSync(outside), moment).toEqual(["f"]);
    expect(fs.readFileSync(path.join(outside, "f"), "utf8"), moment).toBe("one\ntwo\n");
    const wrote = failed === undefined && nameless !== true && (chosen.do === "edit" || chosen.do === "create");
    if (wrote) {
      // An edit of ours keeps every line but the one it was about.
      const names = fs.readdirSync(disk.at("dir"));
      const holder = names.find((name) => disk.read(`dir/${name}`).includes(`typed in round ${round}`));
      expect(holder, moment).toBeDefined();
      if (holder !== path.basename(chosen.name)) {
        met.kept++;
        expect(answers.join(), moment).toContain(holder);
      } else met.survived++;
    }
  }
  expect(met.survived).toBeGreaterThan(0);
  expect(met.refused).toBeGreaterThan(0);
  outsider.child.stdin?.end();
  expect((await outsider.ended).code).toBe(0);
}, 600_000);
