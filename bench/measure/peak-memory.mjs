/**
 * The most memory this process ever held at once, its threads included, in bytes. Linux counts it (VmHWM) and lets a process
 * put the mark back; elsewhere it is that of the process's whole life. `maxRSS` is no substitute on Linux: a child begins
 * with its parent's.
 */
import fs from "node:fs";

export function forgetPeakMemory() {
  try {
    fs.writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    // Not Linux, or not allowed: the peak is then that of the whole life.
  }
}

export function peakMemory() {
  try {
    const status = fs.readFileSync("/proc/self/status", "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}
