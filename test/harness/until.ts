/** Waits for a condition rather than a time: polls every 20 ms until it holds, and names it if it never does. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function until<T>(
  what: string,
  poll: () => Promise<T | undefined> | T | undefined,
  withinMs = 40_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await poll();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`timed out after ${withinMs} ms waiting until: ${what}`);
    await sleep(20);
  }
}
