/** What a directory takes: as its files say, and as the disk counts it (blocks of files and directories alike). */
import fs from "node:fs";
import path from "node:path";

/** `apart` are entries at the top that are not counted. */
export function diskUsage(root, apart = []) {
  const sum = { files: 0, bytes: 0, diskBytes: 0 };
  for (const entry of fs.readdirSync(root, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath ?? entry.path, entry.name);
    if (apart.includes(path.relative(root, file))) continue;
    const stat = fs.lstatSync(file);
    sum.diskBytes += stat.blocks * 512;
    if (!stat.isFile()) continue;
    sum.files++;
    sum.bytes += stat.size;
  }
  return sum;
}
