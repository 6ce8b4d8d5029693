import os from "node:os";
import type { LeaseHolder } from "../core/index.js";
import type { LeaseClaim } from "./contracts.js";
import { claimCommandCharsMax } from "./limits.js";

/** What is recorded of a holder: its claim, and this process. */
export function describeHolder(claim: LeaseClaim, epoch: number, since: Date): LeaseHolder {
  return {
    sessionId: claim.sessionId,
    command: claim.command.slice(0, claimCommandCharsMax),
    host: os.hostname(),
    pid: process.pid,
    since,
    epoch,
  };
}
