/** Where a command works: the storage it opened, the root it speaks of, and where the user stands. */
import path from "node:path";
import { LooprigError, isLooprigError, isMissing } from "../core/index.js";
import type { CanonicalRoot, SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { defaultStateDir } from "../storage-local/index.js";
import type {
  OpenWorkspaceOptions,
  RootHistory,
  Workspace,
  WorkspaceView,
  WorkspaceWorld,
} from "../workspace/index.js";
import { usage } from "./args.js";
import { currentDirectoryGone } from "./current-directory.js";
import { askLetter } from "./ask.js";
import type { Context } from "./context.js";
import { chooseRoot, withoutHistory, withoutHistoryHint } from "./root-choice.js";
import type { RootChoice } from "./root-choice.js";
import { findSession } from "./session-names.js";
import { oneLine } from "./spelling.js";

export interface Place {
  readonly storage: Storage;
  readonly root: CanonicalRoot;
  /** The canonical current directory. */
  readonly here: CanonicalRoot;
  readonly choice: RootChoice;
  /** Whether other roots share the store. */
  readonly shared: boolean;
}

export interface PlaceOptions {
  /** The command makes a history where there is none. All others find nothing there, and make no state directory to say so. */
  readonly begins?: boolean;
}

/** Opens the local state and finds the root; closes the state afterwards. */
export async function withPlace<T>(
  context: Context,
  use: (place: Place) => Promise<T>,
  { begins = false }: PlaceOptions = {},
): Promise<T> {
  const { environment, globals, signal } = context;
  // Loaded here so that help and wrong usage cost neither the driver nor the runtime.
  const [
    { assertOutside, canonicalHomes, canonicalPath, knownRoots },
    { openLocalStorage, defaultStateDir: defaultDir },
    { createMemoryStorage },
  ] = await Promise.all([
    import("../workspace/index.js"),
    import("../storage-local/index.js"),
    import("../storage/index.js"),
  ]);
  const { fileSystem, cwd } = environment;
  const here = canonicalPath(cwd, { fileSystem, option: "the current directory" });
  const given =
    globals.root === undefined ? undefined : canonicalPath(globals.root, { fileSystem, cwd: here, option: "--root" });
  const own = environment.env["LOOPRIG_HOME"];
  const dir = stateDir(context, defaultDir);
  const made = exists(context, dir);
  if (!made) {
    // A state directory that was put into the project by mistake is not even made there. The default place is never meant.
    // A root too broad to be one is refused as such when it is opened.
    const root = given ?? here;
    const broad = canonicalHomes(environment.homes, fileSystem).some((home) => isAbove(root, home));
    if (own !== undefined && !broad) {
      assertOutside([dir], root, { fileSystem });
    }
    assertThere(context, chooseRoot(given, here, []));
  }
  const storage = made || begins ? await openLocalStorage({ dir, signal, fileSystem }) : createMemoryStorage();
  try {
    const known = await knownRoots(storage, { signal });
    const choice = chooseRoot(given, here, known);
    assertThere(context, choice);
    return await use({
      ...{ storage, here, choice },
      root: choice.root as CanonicalRoot,
      shared: known.some(({ root }) => root !== choice.root),
    });
  } finally {
    await storage.close();
  }
}

/** Where the state is, or would be. */
export function stateDir({ environment }: Context, defaultDir: typeof defaultStateDir): string {
  const own = environment.env["LOOPRIG_HOME"];
  if (own !== undefined && own !== "" && !path.isAbsolute(own)) throw relativeState("LOOPRIG_HOME", own);
  const dir = defaultDir(environment.env, environment.platform, environment.home);
  if (!path.isAbsolute(dir)) throw relativeState("HOME", environment.home);
  return dir;
}

const isAbove = (root: string, home: string): boolean => root === "/" || home === root || home.startsWith(`${root}/`);

/** It would be another state directory in every current directory. */
const relativeState = (variable: string, given: string): LooprigError<"usage.invalid"> =>
  usage(
    variable,
    `Cannot keep state below $${variable}: it is ${JSON.stringify(given)}, wanted an absolute path`,
    "an absolute path",
  );

/** Only a root with a history may be gone: `restore` builds it again, and the others say so. A new one is never made up. */
function assertThere(context: Context, choice: RootChoice): void {
  if (choice.known || isDirectory(context, choice.root)) return;
  const { root } = context.globals;
  if (root === undefined) throw currentDirectoryGone(choice.root);
  const what = exists(context, choice.root) ? "it is no directory" : "no directory stands there";
  throw usage("--root", `Cannot use ${JSON.stringify(root)} for --root: ${what}; wanted a directory`, "a directory");
}

export function isDirectory({ environment }: Context, path: string): boolean {
  try {
    return environment.fileSystem.stat(path).isDirectory();
  } catch {
    return false;
  }
}

/** What cannot be looked at is there: whoever opens it says what is wrong. */
function exists({ environment }: Context, path: string): boolean {
  try {
    environment.fileSystem.stat(path);
    return true;
  } catch (error) {
    return !isMissing(error);
  }
}

export async function withView<T>(
  context: Context,
  { storage, root }: Place,
  use: (view: WorkspaceView) => Promise<T>,
): Promise<T> {
  const { readWorkspace } = await import("../workspace/index.js");
  const { signal, globals } = context;
  const view = await readWorkspace({ root, storage, signal, adoptRoot: globals.adoptRoot }, worldOf(context));
  try {
    return await use(view);
  } finally {
    await view.close();
  }
}

/** Takes the root for writing, does the work, and gives it back. What stands in the way is thrown, or asked about. */
export async function withWorkspace<T>(
  context: Context,
  place: Place,
  options: Omit<OpenWorkspaceOptions, "root" | "storage" | "signal" | "adoptRoot" | "baseline">,
  use: (workspace: Workspace) => Promise<T>,
): Promise<T> {
  const workspace = await openForWriting(context, place, options);
  let result: T;
  try {
    result = await use(workspace);
  } catch (error) {
    // The first failure is the one to report; the lease frees itself with the process.
    await workspace.close().catch(() => undefined);
    throw error;
  }
  await workspace.close();
  return result;
}

const worldOf = ({ environment }: Context): WorkspaceWorld => ({
  fileSystem: environment.fileSystem,
  clock: environment.now,
  homes: environment.homes,
});

/** How often a root is looked at again while a command of a killed session still runs there. */
const lookAgainMs = 500;

async function openForWriting(
  context: Context,
  { storage, root }: Place,
  options: Omit<OpenWorkspaceOptions, "root" | "storage" | "signal" | "adoptRoot" | "baseline">,
): Promise<Workspace> {
  const { openWorkspace } = await import("../workspace/index.js");
  let waiting = false;
  let acceptRunning = false;
  for (;;) {
    try {
      return await openWorkspace(
        {
          ...options,
          ...{ root, storage, acceptRunning, signal: context.signal, adoptRoot: context.globals.adoptRoot },
          // Each command captures what it needs at its own boundary.
          baseline: false,
        },
        worldOf(context),
      );
    } catch (error) {
      if (!isLooprigError(error, "workspace_root.command_running") || !context.canAsk) throw error;
      if (!waiting) {
        const { command, pid } = error.details;
        const what = `${oneLine(command)}, pid ${pid}, of a session that was killed`;
        const answer = await askLetter(
          context,
          `Still running in ${context.displayRoot(root)}: ${what}. [w] wait for it  [g] go on beside it  [n] neither`,
          ["w", "g", "n"],
        );
        if (answer === "g") acceptRunning = true;
        else if (answer === "w") waiting = true;
        else throw error;
      }
      if (waiting) await pause(lookAgainMs, context.signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { setTimeout: delay } = await import("node:timers/promises");
  await delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** `--session` as one of the root's sessions. */
export const sessionOf = (context: Context, history: Pick<RootHistory, "sessions">): SessionId | undefined =>
  context.globals.session === undefined ? undefined : findSession(context.globals.session, history.sessions);

/** Refuses to speak of a root that has no history, naming where there is one. */
export function assertKnown(context: Context, { choice }: Place, given: string): void {
  if (choice.known) return;
  throw new LooprigError(
    "ref.unknown",
    `Cannot find ${JSON.stringify(given)}: ${withoutHistory(choice, (root) => context.displayRoot(root))}`,
    { given },
    { hint: withoutHistoryHint(choice) },
  );
}

/** Names the root when it is not where the user stands and the output does not name it anyhow. */
export async function sayWhere(context: Context, { choice }: Place): Promise<void> {
  if (choice.foundAbove && !context.globals.json)
    await context.say(`looprig: in ${context.displayRoot(choice.root)}\n`);
}

export async function sayWithoutHistory(context: Context, { choice }: Place): Promise<void> {
  const elsewhere = withoutHistory(choice, (root) => context.displayRoot(root));
  await context.say(`${elsewhere}.\n  ${withoutHistoryHint(choice)}\n`);
}
