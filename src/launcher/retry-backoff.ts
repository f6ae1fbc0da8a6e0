/**
 * The launcher's one curve of pauses: 1, 2, 4, 8, then 15 s, each shorter by up to 30 % at random. It holds for whatever
 * failed or is missing: a scheduler that crashed, a database that is out of reach or without Millrace, an engine that was
 * not found, a host that did not come up.
 *
 * 15 s: whatever is repaired is noticed within that time, and a scheduler that keeps a processor busy for 8 s, until its
 * host is given up, gets a third of one processor at most.
 */
import { type Backoff, delayMs } from '../kernel/backoff.ts';

const retryBackoff: Backoff = { firstMs: 1_000, capMs: 15_000, jitter: 0.3 };

/** The pause before the next try, after so many tries that failed before this one. */
export function retryDelayMs(failures: number, random: () => number = Math.random): number {
  return delayMs(retryBackoff, failures, random);
}

/** The pause before the next look at something that has been missing for that long: the same curve. */
export function lookDelayMs(missingForMs: number, random: () => number = Math.random): number {
  const looks = Math.floor(Math.log2(Math.max(1, missingForMs / retryBackoff.firstMs)));
  return delayMs(retryBackoff, looks, random);
}
