import { fileURLToPath } from "node:url";
import fs from "node:fs";
import { invariant } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

/** The version in the package's own manifest, which stands two directories above this file in the source and as built. */
export function version(fileSystem: FileSystem): string {
  const file = fileURLToPath(new URL("../../package.json", import.meta.url));
  const manifest = JSON.parse(readText(fileSystem, file)) as { readonly version?: unknown };
  invariant(typeof manifest.version === "string", "BUG: the package's manifest has no version");
  return manifest.version;
}

function readText(fileSystem: FileSystem, file: string): string {
  const fd = fileSystem.open(file, fs.constants.O_RDONLY);
  try {
    const bytes = Buffer.alloc(Number(fileSystem.fstat(fd).size));
    let length = 0;
    while (length < bytes.length) {
      const read = fileSystem.read(fd, bytes, length, bytes.length - length, length);
      if (read === 0) break;
      length += read;
    }
    return bytes.toString("utf8", 0, length);
  } finally {
    fileSystem.close(fd);
  }
}
