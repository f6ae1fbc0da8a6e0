/** Exponential backoff with jitter: delays between retries. Jitter prevents that many clients retry at the same moment. */
import { pause } from './service.ts';

export interface Backoff {
  readonly firstMs: number;
  readonly capMs: number;
  /** 0: no jitter. 1: the delay is anywhere between 0 and the full delay. */
  readonly jitter: number;
}

/** Finds a server that is back within 2 s. */
export const reconnect: Backoff = { firstMs: 50, capMs: 2_000, jitter: 0.5 };

export function delayMs(backoff: Backoff, attempt: number, random: () => number = Math.random): number {
  const full = Math.min(backoff.capMs, backoff.firstMs * 2 ** Math.min(attempt, 30));
  return full * (1 - backoff.jitter * random());
}

/** Retries until the work succeeds, the signal aborts, or `giveUp` returns true for an error. */
export async function persist<T>(
  work: () => Promise<T>,
  options: { backoff: Backoff; signal?: AbortSignal; giveUp?: (e: unknown) => boolean; onRetry?: (e: unknown) => void },
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (options.signal?.aborted || options.giveUp?.(error)) throw error;
      options.onRetry?.(error);
      await pause(delayMs(options.backoff, attempt), options.signal);
      if (options.signal?.aborted) throw error;
    }
  }
}
