/**
 * While a command owns the terminal, SIGINT and SIGQUIT reach it from the terminal itself and are ignored here; SIGTERM and
 * SIGHUP reach only us and are passed on. Returns what puts this process's own handling back.
 */
export function passSignals(pass: (name: NodeJS.Signals) => void): () => void {
  const ignored = ["SIGINT", "SIGQUIT"] as const;
  const passed = ["SIGTERM", "SIGHUP"] as const;
  const ignore = (): void => undefined;
  for (const name of ignored) process.on(name, ignore);
  for (const name of passed) process.on(name, pass);
  return () => {
    for (const name of ignored) process.off(name, ignore);
    for (const name of passed) process.off(name, pass);
  };
}
