/** A tool that adds a line to a section of CHANGELOG.md. */
import fs from "node:fs";
import path from "node:path";
import { defineTool } from "looprig";
import { z } from "zod";

const file = "CHANGELOG.md";

export const addEntry = defineTool({
  name: "AddEntry",
  description: "Adds an entry to a section of CHANGELOG.md, after those that are there.",
  requires: ["workspace"],
  inputSchema: z.object({
    section: z.enum(["Added", "Changed", "Fixed"]),
    entry: z.string().min(1).max(200).describe("One line, without a bullet"),
  }),
  execute: async ({ section, entry }, { workspace, signal }) => {
    // Whoever changes a file holds the permit for it from the first look to the last write. It ends with the call.
    const permit = await workspace.coordinator.acquire({ operation: "path-mutation", paths: [file] }, { signal });
    const target = path.join(workspace.root, file);
    const lines = fs.readFileSync(target, "utf8").split("\n");
    const heading = lines.indexOf(`## ${section}`);
    if (heading === -1) {
      // An error result is for the model: what is wrong, and what would be right.
      const sections = lines.filter((line) => line.startsWith("## ")).map((line) => line.slice(3));
      return {
        text: `${file} has no section ${section}; it has ${sections.join(", ")}. Nothing was written.`,
        isError: true,
      };
    }
    const next = lines.findIndex((line, i) => i > heading && line.startsWith("## "));
    let end = next === -1 ? lines.length : next;
    while (lines[end - 1]?.trim() === "") end -= 1;
    lines.splice(end, 0, `- ${entry}`);

    fs.writeFileSync(`${target}.new`, lines.join("\n"));
    permit.assertHeld(); // the last thing before the commit: the permit, and the lease of the root
    fs.renameSync(`${target}.new`, target);
    return { text: `Added to ${section}.`, data: { line: end + 1 } };
  },
});
