/**
 * The shortest pause after a failure, by the health of the subscriber. Health itself, from 0 to 100, is kept by `deliver_done` (+1) and
 * `deliver_failed` (−2).
 */

/** The pause after a failure at health 0. Each point halves it; from 17 points on it is 0. */
const maxPauseMs = 60_000;

/** Retries never come sooner after a failure than this. */
export function shortestPauseMs(health: number): number {
  return Math.round(maxPauseMs * 2 ** -health);
}
