/** What a rig promises at compile time; checked by `npm run typecheck`, never run. */
import { defineLoop } from "../loop/index.js";
import type { LanguageModel } from "../loop/index.js";
import type { Storage } from "../storage/index.js";
import type { Workspace } from "../workspace/index.js";
import type { DefineRig } from "./define-rig.js";
import type { RigOptions } from "./options.js";
import type { Rig } from "./rig.js";

declare const model: LanguageModel;
declare const storage: Storage;
declare const defineRig: DefineRig;
const operator = defineLoop({ name: "operator", model });
const critic = defineLoop({ name: "critic", model });
const same = <T>(value: T): T => value;

// With a placement there is a workspace, whichever it is.
const exclusive = defineRig({ storage, loops: [operator], exclusiveWorkspace: { root: "." }, snapshots: "idle" });
const session = await exclusive.startSession();
same<Workspace>(session.workspace);
await session.workspace.undo();
same<Rig<"operator", true>>(exclusive);
same<Rig<"operator", true>>(
  defineRig({ storage, loops: [operator], sharedWorkspace: { root: "." }, snapshots: { trigger: "manual" } }),
);
same<Rig<"operator", true>>(
  defineRig({
    storage,
    loops: [operator],
    sessionWorkspaces: { baseDir: "." },
    snapshots: { priority: "required", timeoutMs: undefined },
  }),
);

// A session is a resource, of a rig of any kind.
await using resumed = await exclusive.resumeSession("an id", { root: "adopt", onDrift: () => "accept" });
for await (const part of await resumed.submit("go on")) if (part.type === "text-delta") same<string>(part.text);
// @ts-expect-error how manifests are compared is the rig's own business
await exclusive.resumeSession("an id", { drift: () => [] });

// P2: without one there is none.
const bare = defineRig({ storage, loops: [operator, critic], primers: ["critic"], activePrimer: "critic" });
const talk = await bare.startSession();
same<Rig<"operator" | "critic", false>>(bare);
// @ts-expect-error no placement, no workspace
same<unknown>(talk.workspace);
// @ts-expect-error a rig without a workspace is not one with
same<Rig<"operator" | "critic", true>>(bare);

// Loops are known by name.
await talk.setActiveLoop("operator");
// @ts-expect-error no such loop
await talk.setActiveLoop("oprator");
// @ts-expect-error primers are names of loops
defineRig({ storage, loops: [operator], primers: ["critic"] });
// @ts-expect-error so is the active one
defineRig({ storage, loops: [operator], activePrimer: "critic" });

// P2: one placement only.
// @ts-expect-error two are too many
defineRig({
  storage,
  loops: [operator],
  exclusiveWorkspace: { root: "." },
  sharedWorkspace: { root: "." },
  snapshots: "idle",
});
defineRig({
  storage,
  loops: [operator],
  exclusiveWorkspace: undefined,
  sharedWorkspace: { root: "." },
  snapshots: "idle",
});

// S1: `snapshots` exactly with a placement.
// @ts-expect-error required with one
defineRig({ storage, loops: [operator], exclusiveWorkspace: { root: "." } });
// @ts-expect-error forbidden without
defineRig({ storage, loops: [operator], snapshots: "idle" });
// @ts-expect-error no such trigger
defineRig({ storage, loops: [operator], exclusiveWorkspace: { root: "." }, snapshots: "always" });
// @ts-expect-error a shared workspace cannot be required
defineRig({ storage, loops: [operator], sharedWorkspace: { root: "." }, snapshots: { priority: "required" } });

// Stores are any storage, or the parts of one that are used.
defineRig({
  sessionStore: storage,
  loops: [operator],
  exclusiveWorkspace: {
    root: ".",
    store: storage,
    leaser: { leaser: storage.leaser, persistencePaths: () => [] },
  },
  snapshots: "idle",
});
defineRig({
  storage,
  loops: [operator],
  // @ts-expect-error B1: a leaser says where it writes
  exclusiveWorkspace: { root: ".", leaser: { leaser: storage.leaser } },
  snapshots: "idle",
});
defineRig({
  storage,
  loops: [operator],
  // @ts-expect-error no root lease in shared placement
  sharedWorkspace: { root: ".", leaser: storage },
  snapshots: "idle",
});

// Options that do not exist do not compile, in the rig and in its placement.
// @ts-expect-error the name is misspelt
defineRig({ storage, loops: [operator], primer: ["operator"] });
// @ts-expect-error the name is misspelt
defineRig({ storage, loops: [operator], exclusiveWorkspace: { root: ".", alowBroadRoot: true }, snapshots: "idle" });

// Options that are known only when the program runs make a rig whose sessions may have a workspace.
declare const any: RigOptions<"operator">;
const some = defineRig(any);
same<Workspace | undefined>((await some.startSession()).workspace);
// Code that takes any rig takes each of these.
const names = (rig: Rig): string => rig.fingerprint;
names(exclusive);
names(bare);
names(some);
