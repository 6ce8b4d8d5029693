import path from "node:path";

/**
 * Where looprig keeps its state unless told otherwise: `$LOOPRIG_HOME`, else `$XDG_STATE_HOME/looprig` or
 * `~/.local/state/looprig`, on macOS `~/Library/Application Support/looprig`. Empty variables count as absent, and so does
 * a relative `$XDG_STATE_HOME`, as its specification wants.
 */
export function defaultStateDir(
  environment: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
  home: string,
): string {
  const own = environment["LOOPRIG_HOME"];
  if (own !== undefined && own !== "") return path.resolve(own);
  if (platform === "darwin") return path.join(home, "Library", "Application Support", "looprig");
  const xdg = environment["XDG_STATE_HOME"];
  const base = xdg !== undefined && path.isAbsolute(xdg) ? xdg : path.join(home, ".local", "state");
  return path.join(base, "looprig");
}
