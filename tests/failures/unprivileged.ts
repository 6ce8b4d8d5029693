/** Rights in tests: root may write everywhere, so nothing that a mode forbids would be met. */
import fs from "node:fs";

const nobody = 65_534;

/** Until it is disposed of this process is a user without rights beyond those of the modes of files, to whom `own` belong. */
export function withoutPrivileges(...own: readonly string[]): Disposable {
  const privileged = process.geteuid?.() === 0;
  if (privileged) {
    for (const directory of own) fs.chownSync(directory, nobody, nobody);
    process.seteuid?.(nobody);
  }
  return {
    [Symbol.dispose]: () => {
      if (privileged) process.seteuid?.(0);
    },
  };
}
