/** Thrown when the program contradicts itself. Never caught to go on: a broken invariant stops the work it was found in. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Asserts what the code around it guarantees. `message` starts with "BUG:" so that a report names itself. */
export function invariant(condition: unknown, message: `BUG: ${string}`): asserts condition {
  if (!condition) throw new InvariantError(message);
}
