/**
 * The launcher's backoff for everything that failed or is missing (a crashed scheduler, a database that is unreachable or
 * without Millrace, a missing engine, a host that did not start): 1, 2, 4, 8, then 15 s, each shorter by up to 30 % at random.
 *
 * With 15 s, a repair is noticed within that time, and a scheduler that keeps a processor busy for 8 s, until its host is
 * given up, uses at most a third of one processor.
 */
import { type Backoff, delayMs } from '../kernel/backoff.ts';

const retryBackoff: Backoff = { firstMs: 1_000, capMs: 15_000, jitter: 0.3 };

/** The pause before the next attempt. `failures`: failed attempts before the last one. */
export function retryDelayMs(failures: number, random: () => number = Math.random): number {
  return delayMs(retryBackoff, failures, random);
}

/** The pause before the next inspection of something that has been missing for that long; the same backoff. */
export function lookDelayMs(missingForMs: number, random: () => number = Math.random): number {
  const looks = Math.floor(Math.log2(Math.max(1, missingForMs / retryBackoff.firstMs)));
  return delayMs(retryBackoff, looks, random);
}
