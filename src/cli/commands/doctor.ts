import type { FileSystem } from "../../core/index.js";
import type { StateExamination } from "../../storage-local/index.js";
import { defineCommand } from "../command.js";
import type { Context } from "../context.js";
import { looking } from "../doctor/finding.js";
import type { Finding } from "../doctor/finding.js";
import { journalFindings, leaseFindings, rootFindings } from "../doctor/history-findings.js";
import { nodeFindings, stateFindings } from "../doctor/state-findings.js";
import { packFindings, pinFindings } from "../doctor/store-findings.js";
import type { StoreSize } from "../doctor/store-findings.js";
import { exit } from "../exit-codes.js";
import { stateDir } from "../place.js";
import { doctorDocument, doctorText } from "../render-doctor.js";
import type { DoctorData } from "../render-doctor.js";
import { sessionNames } from "../session-names.js";

export const command = defineCommand({
  grammar: { command: "doctor", options: {}, operands: [], required: 0, rest: "none" },
  usage: "doctor",
  summary: "look at everything looprig keeps, and say what is wrong and what mends it",
  narrows: false,
  notes: [
    "Looks at the state directory, its database, every journal, every root, the packs and pins of the store, and who is at work. Nothing is changed. A line with ! needs a person; one with · is worth knowing and rights itself. Content is not read: that is looprig verify.",
    "Exit: 0 nothing is wrong, 1 something needs a person.",
  ],
  run: async (context) => {
    const { environment, globals, style } = context;
    const data = await examine(context);
    if (globals.json) await context.document("doctor", null, doctorDocument(data));
    else await context.print(doctorText(data, { home: environment.home, style }));
    return data.findings.some(({ level }) => level === "problem") ? exit.failed : exit.done;
  },
});

async function examine(context: Context): Promise<DoctorData> {
  const { environment } = context;
  const { examineStateDirectory, defaultStateDir } = await import("../../storage-local/index.js");
  const { fileSystem, platform, uid, home, nodeVersion } = environment;
  const dir = stateDir(context, defaultStateDir);
  const state = examineStateDirectory(fileSystem, dir, { uid, platform, now: context.now.getTime() });
  const outside = [...nodeFindings(nodeVersion, platform), ...stateFindings(state, home)];
  const { format, freeBytes, spoolBytes } = state;
  const facts = { dir, format, freeBytes, spoolBytes, store: undefined, sessions: undefined, roots: undefined };
  if (!canBeOpened(state)) return { ...facts, findings: outside };
  const inside = await examineContents(context, dir);
  return { ...facts, ...inside, findings: [...outside, ...inside.findings] };
}

/** Whether what is inside can be looked at; whatever stands in the way is told already. */
const canBeOpened = ({ format, troubles }: StateExamination): boolean =>
  format !== undefined && troubles.every(({ kind }) => rightsItself.has(kind));

const rightsItself: ReadonlySet<string> = new Set(["open-to-others", "temporaries", "network"]);

type Contents = Pick<DoctorData, "store" | "sessions" | "roots" | "findings">;

async function examineContents(context: Context, dir: string): Promise<Contents> {
  const [{ openLocalStorage }, { createSessionStore }, { createWorkspaceStore }, { examineRoots, listSessions }] =
    await Promise.all([
      import("../../storage-local/index.js"),
      import("../../session-store/index.js"),
      import("../../workspace-store/index.js"),
      import("../../workspace/index.js"),
    ]);
  const { environment, now, signal } = context;
  const fileSystem = withoutTidying(environment.fileSystem);
  const findings: Finding[] = [];
  const look = async (check: string, by: () => Promise<readonly Finding[]>): Promise<void> => {
    findings.push(...(await looking(check, signal, by)));
  };
  let [sessions, roots]: [number | undefined, number | undefined] = [undefined, undefined];
  let store: StoreSize | undefined;
  await look("state", async () => {
    await using storage = await openLocalStorage({ dir, signal, fileSystem, allowNetworkFileSystem: true });
    await look("sessions", async () => {
      const all = await listSessions(storage, { signal });
      sessions = all.length;
      const view = { home: environment.home, now, sessionName: sessionNames(all.map(({ id }) => id)) };
      await look("leases", async () => leaseFindings(await storage.leaser.list("", { signal }), view));
      await look("pins", () =>
        pinFindings(createWorkspaceStore(storage, { fileSystem }), new Set(all.map(({ id }) => id)), { signal }),
      );
      return journalFindings(createSessionStore(storage), all, view, { signal });
    });
    await look("roots", async () => {
      const examined = await examineRoots(storage, { signal, fileSystem });
      roots = examined.length;
      return rootFindings(examined, environment);
    });
    await look("packs", async () => {
      const { size, findings: found } = await packFindings(storage, { signal });
      store = size;
      return found;
    });
    return [];
  });
  return { sessions, roots, store, findings };
}

/** What opening a state directory does to keep it tidy would be a change, and would hide what is to be told. */
const withoutTidying = (fileSystem: FileSystem): FileSystem => ({
  ...fileSystem,
  chmod: () => undefined,
  unlink: () => undefined,
});
