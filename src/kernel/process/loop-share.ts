/**
 * Shares the event loop: long work that is done in small pieces lets others go on in between.
 *
 * `const rest = loopShare();` before the pieces, `await rest();` after each. Most calls cost a look at the clock.
 */
import { setImmediate } from 'node:timers/promises';

/** No piece of work is to hold the loop for longer. */
const turnMs = 5;

export function loopShare(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < turnMs) return;
    await setImmediate();
    sinceMs = performance.now();
  };
}
