/** The health of a subscriber, from 0 to 100: a success adds 1, a failure takes 2. It is shown, and sets the shortest pause. */

/** The pause after a failure at health 0. Each point halves it, so that nothing is left of it above 17 points. */
const maxPauseMs = 60_000;

/** Retries never come sooner after a failure than this. */
export function shortestPauseMs(health: number): number {
  return Math.round(maxPauseMs * 2 ** -health);
}
