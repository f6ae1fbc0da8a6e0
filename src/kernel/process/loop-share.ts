/**
 * Shares the event loop: long work in small pieces lets other work run in between.
 *
 * Call `const rest = loopShare();` before the pieces, and `await rest();` after each. Most calls only read the clock.
 */
import { setImmediate } from 'node:timers/promises';

/** The longest time without giving up the event loop, in milliseconds. */
const turnMs = 5;

export function loopShare(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < turnMs) return;
    await setImmediate();
    sinceMs = performance.now();
  };
}
