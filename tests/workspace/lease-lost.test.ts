/** A lease that expires under a session (C5, C7): played by the expiring leaser of memory storage and a clock driven by hand. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { createMemoryStorage } from "../../src/storage/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";

const quiet = { stdio: "ignore" } as const;

it("a session whose lease is lost commits nothing more, and the next holder is not disturbed by it", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  let now = 1_000_000;
  const storage = createMemoryStorage({ leaseTtlMs: 10_000, clock: () => now });
  const open = () => openWorkspace({ root: place.root, storage, baseline: false, command: "test" });
  const first = await open();
  await first.exec(place.sh("printf 1 > f"), quiet);
  await expect(open()).rejects.toMatchObject({ code: "workspace_root.busy" });

  now += 10_001;
  const second = await open();
  await expect(first.undo()).rejects.toMatchObject({ code: "workspace_root.lease_lost" });
  await expect(first.checkpoint()).rejects.toMatchObject({ code: "workspace_root.lease_lost" });
  await expect(first.exec(["touch", "made"], quiet)).rejects.toMatchObject({ code: "workspace_root.lease_lost" });
  expect(place.tree()).toEqual({ f: "file 644 1" });

  // The session of the first is settled by the second, which may do everything.
  expect((await second.undo()).result).toBe("done");
  expect(place.read("f")).toBe("0");
  await first.close();
  expect((await second.redo()).result).toBe("done");
  expect(fs.readFileSync(place.at("f"), "utf8")).toBe("1");
  await second.close();
});
