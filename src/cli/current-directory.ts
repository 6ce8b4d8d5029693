import path from "node:path";

/** The current directory; after it was removed, the place where it stood, as the shell remembers it. */
export function currentDirectory(cwd: () => string, env: Readonly<Record<string, string | undefined>>): string {
  try {
    return cwd();
  } catch (error) {
    const remembered = env["PWD"];
    if (remembered !== undefined && path.isAbsolute(remembered)) return remembered;
    throw error;
  }
}
