/** borg, unencrypted, which is its quickest; its cache is beside the repository and not counted as store. */
import fs from "node:fs";
import { run, timed, versionOf } from "../measure/commands.mjs";

export const borg = { key: "borg", title: "borg", version: () => versionOf("borg"), open };

function open({ tree, store }) {
  const environment = {
    ...process.env,
    BORG_REPO: store,
    BORG_BASE_DIR: `${store}-base`,
    BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK: "yes",
  };
  fs.mkdirSync(`${store}-base`);
  const call = (args, cwd = tree) => run("borg", args, { cwd, env: environment });
  let count = 0;
  const create = () => timed(() => call(["create", `::${count++}`, "."]));
  call(["init", "--encryption", "none"]);
  return {
    first: create,
    capture: create,
    materialize: (dest) =>
      timed(() => {
        fs.mkdirSync(dest);
        call(["extract", `::${count - 1}`], dest);
      }),
  };
}
