/** Who has a root for writing, in one line. */
import type { LeaseHolder } from "../core/index.js";
import { fit } from "./columns.js";
import { oneLine } from "./spelling.js";
import { clock } from "./times.js";

/** `exec "claude", session b71c, pid 4121, since 14:02`. */
export const holderLine = (holder: LeaseHolder, now: Date, name: (id: LeaseHolder["sessionId"]) => string): string =>
  `${fit(oneLine(holder.command), 60)}, session ${name(holder.sessionId)}, pid ${holder.pid}, since ${clock(holder.since, now)}`;
