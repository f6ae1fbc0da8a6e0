/**
 * What a process does while it starts, on a server that it has reached a moment ago: a server that goes away just then, or
 * ends connections, is waited for like at any later time; but not by a process that is to end.
 */
import { isConnectionLoss } from '../errors.ts';
import { persist, reconnect } from '../kernel/backoff.ts';

const longestMs = 60_000;

export function outlast<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const lastMs = performance.now() + longestMs;
  return persist(work, {
    backoff: reconnect,
    ...(signal && { signal }),
    giveUp: (error) => !isConnectionLoss(error) || performance.now() > lastMs,
  });
}
