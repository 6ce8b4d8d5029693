/** A real file system of a few megabytes that a test may fill. Only root may mount one, and not in every container. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

export class Volume implements Disposable {
  readonly path: string;
  readonly #ballast: string;

  private constructor(mounted: string) {
    this.path = mounted;
    this.#ballast = path.join(mounted, "ballast");
  }

  /** Undefined where mounting is refused. */
  static mount(mebibytes: number): Volume | undefined {
    const at = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-volume-"));
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m,mode=700`, "looprig-test", at], {
        stdio: "ignore",
      });
      return new Volume(at);
    } catch {
      fs.rmdirSync(at);
      return undefined;
    }
  }

  freeBytes(): number {
    const { bavail, bsize } = fs.statfsSync(this.path);
    return bavail * bsize;
  }

  /** Fills the volume until only so much is free, whole pages as the file system counts. */
  leaveFree(bytes: number): void {
    this.release();
    const fd = fs.openSync(this.#ballast, "w");
    try {
      const block = Buffer.alloc(1024 * 1024);
      for (let left = this.freeBytes() - bytes; left > 0;)
        left -= fs.writeSync(fd, block, 0, Math.min(left, block.length));
    } finally {
      fs.closeSync(fd);
    }
  }

  /** Gives the space back. */
  release(): void {
    fs.rmSync(this.#ballast, { force: true });
  }

  [Symbol.dispose](): void {
    execFileSync("umount", ["--lazy", this.path], { stdio: "ignore" });
    fs.rmdirSync(this.path);
  }
}
