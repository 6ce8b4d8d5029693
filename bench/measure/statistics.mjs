/** Medians, and ratios of pairs that were taken in the same round. */

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * The median of own[i] / peer[i]. What the machine does meanwhile moves both of a pair, so pairs say more than two medians.
 * Rounds that one of the two sat out are left out.
 */
export function medianRatio(own, peer) {
  const ratios = [...own].filter(([round]) => peer.has(round)).map(([round, value]) => value / peer.get(round));
  return ratios.length === 0 ? undefined : median(ratios);
}
