/** Waits on a condition, not on a clock: looks again until it holds, and says what never came. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  withinMs = 40_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain: ${what}`);
    await sleep(20);
  }
}
