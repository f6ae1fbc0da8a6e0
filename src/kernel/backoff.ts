/** Backoff: how long to wait before trying again, doubling with jitter so that many do not come back at once. */
import { pause } from './service.ts';

export interface Backoff {
  readonly firstMs: number;
  readonly capMs: number;
  /** 0: none, 1: anywhere between nothing and the full delay. */
  readonly jitter: number;
}

/** A server that is back is found within 2 s. */
export const reconnect: Backoff = { firstMs: 50, capMs: 2_000, jitter: 0.5 };

export function delayMs(backoff: Backoff, attempt: number, random: () => number = Math.random): number {
  const full = Math.min(backoff.capMs, backoff.firstMs * 2 ** Math.min(attempt, 30));
  return full * (1 - backoff.jitter * random());
}

/** Tries until it succeeds, the signal aborts, or `giveUp` says that this error will not go away. */
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
