/** What stands on disk, told by plain system calls that share nothing with the code under test. */
import { hash } from "node:crypto";
import fs from "node:fs";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;

/**
 * Every entry below `root` in byte order, parents first: name, kind, permission bits, size and digest or target. Names are
 * latin1 of their bytes, so that any name prints and no two look alike. Each directory is reached through its open parent,
 * since the paths of a deep tree are longer than any call accepts.
 */
export function listing(root: string): readonly string[] {
  const found: string[] = [];
  const visit = (fd: number, shown: string): void => {
    const here = `/proc/self/fd/${fd}`;
    const names = fs.readdirSync(here, { encoding: "buffer" }).sort((a, b) => Buffer.compare(a, b));
    for (const bytes of names) {
      const at = Buffer.concat([Buffer.from(`${here}/`), bytes]);
      const name = shown + bytes.toString("latin1");
      const stats = fs.lstatSync(at);
      const mode = (stats.mode & 0o7777).toString(8);
      if (stats.isDirectory()) {
        found.push(`${name} directory ${mode}`);
        const child = fs.openSync(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        try {
          visit(child, `${name}/`);
        } finally {
          fs.closeSync(child);
        }
      } else if (stats.isFile()) {
        found.push(`${name} file ${mode} ${stats.size} ${hash("sha256", fs.readFileSync(at)).slice(0, 16)}`);
      } else if (stats.isSymbolicLink()) {
        found.push(`${name} link ${fs.readlinkSync(at, { encoding: "buffer" }).toString("latin1")}`);
      } else found.push(`${name} special`);
    }
  };
  const fd = fs.openSync(root, O_RDONLY | O_DIRECTORY);
  try {
    visit(fd, "");
  } finally {
    fs.closeSync(fd);
  }
  return found;
}
