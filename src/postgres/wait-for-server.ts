/**
 * Retries a step of a process's start while its server, which it had reached before, is away or ends connections. It gives up
 * when the process is stopped.
 */
import { isConnectionLoss } from '../errors.ts';
import { persist, reconnect } from '../kernel/backoff.ts';

const longestMs = 60_000;

export function retryUntilServerAnswers<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const lastMs = performance.now() + longestMs;
  return persist(work, {
    backoff: reconnect,
    ...(signal && { signal }),
    giveUp: (error) => !isConnectionLoss(error) || performance.now() > lastMs,
  });
}
