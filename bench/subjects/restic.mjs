/** restic, without a password worth the name; its cache is beside the repository and not counted as store. */
import { run, timed, versionOf } from "../measure/commands.mjs";

export const restic = {
  key: "restic",
  title: "restic",
  version: () => {
    // restic has no `--version`; `version` is a command.
    try {
      return run("restic", ["version"]);
    } catch {
      return versionOf("restic");
    }
  },
  open,
};

function open({ tree, store }) {
  const environment = {
    ...process.env,
    RESTIC_PASSWORD: "bench",
    RESTIC_REPOSITORY: store,
    RESTIC_CACHE_DIR: `${store}-cache`,
  };
  const call = (...args) => run("restic", args, { cwd: tree, env: environment });
  const backup = () => timed(() => call("backup", "-q", "."));
  call("init", "-q");
  return {
    first: backup,
    capture: backup,
    materialize: (dest) => timed(() => call("restore", "-q", "latest", "--target", dest)),
  };
}
