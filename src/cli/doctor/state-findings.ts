/** The machine and the state directory, in words. Pure. */
import path from "node:path";
import type { StateExamination, StateTrouble } from "../../storage-local/index.js";
import { bytes, count } from "../amounts.js";
import { displayRoot, shellWord } from "../spelling.js";
import { note, problem } from "./finding.js";
import type { Finding } from "./finding.js";

/** What `package.json` promises. */
export function nodeFindings(version: string, platform: NodeJS.Platform): readonly Finding[] {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 24;
  return [
    ...(fits
      ? []
      : [problem("node", `Node ${version} is not one looprig is made for`, "node 20.19, 22.12, or 24 and later")]),
    ...(platform === "linux" || platform === "darwin"
      ? []
      : [problem("platform", `looprig does not work on ${platform}: its locks and modes are not built for it`)]),
  ];
}

export function stateFindings(
  { dir, troubles, freeBytes, reserveBytes, spoolBytes }: StateExamination,
  home: string,
): readonly Finding[] {
  const at = (file: string): string => displayRoot(file, home);
  const found = troubles.map((trouble) => stateFinding(trouble, dir, at));
  if (freeBytes !== undefined && freeBytes < reserveBytes) {
    found.push(
      problem(
        "space",
        `${bytes(freeBytes)} are free below ${at(dir)}; captures stop below ${bytes(reserveBytes)}`,
        "looprig gc --now",
      ),
    );
  }
  if (spoolBytes > spoolBytesWorthTelling) {
    found.push(
      note(
        "spool",
        `${at(path.join(dir, "spool"))} holds ${bytes(spoolBytes)} that only saves time; it may be deleted`,
      ),
    );
  }
  return found;
}

const spoolBytesWorthTelling = 1024 ** 3;

function stateFinding(trouble: StateTrouble, dir: string, at: (file: string) => string): Finding {
  switch (trouble.kind) {
    case "absent":
      return note("state", `there is no state directory yet at ${at(dir)}`, "looprig exec -- <command> makes it");
    case "not-a-directory":
      return problem("state", `${at(dir)} is no directory`, "remove it, or name another place with LOOPRIG_HOME");
    case "not-a-store":
      return problem(
        "format",
        `${at(dir)} is no state directory of looprig, or its first start was cut short`,
        "name another place with LOOPRIG_HOME if it holds something else",
      );
    case "format-damaged":
      return problem(
        "format",
        `${at(path.join(dir, "format"))} does not name a format`,
        "copy the directory away before repairing it",
      );
    case "newer-format":
      return problem(
        "format",
        `${at(dir)} has format ${trouble.found}; this looprig knows up to ${trouble.supported}`,
        "use the looprig that wrote it, or a newer one",
      );
    case "unreadable":
      return problem(
        "state",
        `${at(trouble.path)} cannot be looked at`,
        `ls -ld ${shellWord(path.dirname(trouble.path))}`,
      );
    case "missing":
      return problem(
        "state",
        `${at(trouble.path)} is missing`,
        "copy the directory away, and bring it back from a copy",
      );
    case "foreign-owner":
      return problem(
        "owner",
        `${at(trouble.path)} belongs to user ${trouble.uid}`,
        `chown -R "$(id -u)" ${shellWord(dir)}, or another LOOPRIG_HOME`,
      );
    case "open-to-others":
      return note(
        "modes",
        `${at(trouble.path)} is open to others (mode ${trouble.mode.toString(8).padStart(4, "0")}); the next start of looprig tightens it`,
      );
    case "network":
      return problem(
        "network",
        `${at(dir)} is on a network file system (${trouble.type}), where locks cannot be trusted`,
        "name a directory on a local disk with LOOPRIG_HOME",
      );
    case "database":
      return problem(
        "database",
        `${at(trouble.path)} is damaged: ${trouble.problem}`,
        "copy the directory away before repairing it; files in roots are not touched",
      );
    case "temporaries":
      return note(
        "temporaries",
        `${count(trouble.count, "file")} of killed writers; the next start of looprig removes ${trouble.count === 1 ? "it" : "them"}`,
      );
    default:
      return trouble satisfies never;
  }
}
