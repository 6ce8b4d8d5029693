/** Whether a call waits for a person's yes (T5). In doubt it does. */

/**
 * `true`: every call; a function: the calls it says so of, given the checked input. Default: none. Whatever it does but
 * answer `false` means that the call needs approval.
 */
export type NeedsApproval<Input> = boolean | ((input: Input) => boolean | Promise<boolean>);

export async function needsApproval(rule: NeedsApproval<never>, input: unknown): Promise<boolean> {
  if (typeof rule === "boolean") return rule;
  try {
    const answer: unknown = await rule(input as never);
    return answer !== false;
  } catch {
    // A rule that cannot judge has not said that the call is harmless.
    return true;
  }
}
