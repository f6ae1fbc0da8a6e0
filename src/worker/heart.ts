/**
 * The heartbeat: tells the API every five seconds which runs are held, which renews their leases, and hears which are
 * lost or to be killed (I4). The first one goes out at once and is repeated until it is heard; after a failed one the
 * next comes sooner.
 */
import type { HeldRun, Signals } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

export interface HeartOptions {
  beat(holds: readonly HeldRun[], signal?: AbortSignal): Promise<Signals>;
  holds(): readonly HeldRun[];
  hear(signals: Signals): void;
  /** After the first one that was heard. */
  onFirst(): void;
  readonly onError: (error: unknown) => void;
  readonly intervalMs: number;
}

export function makeHeart(options: HeartOptions): Service {
  let heard = false;
  let failures = 0;
  async function beatOnce(signal: AbortSignal): Promise<void> {
    options.hear(await options.beat(options.holds(), signal));
    failures = 0;
    if (!heard) options.onFirst();
    heard = true;
  }
  return loop(
    'heart',
    async (signal) => {
      heard = false;
      while (!signal.aborted) {
        let waitMs = options.intervalMs;
        try {
          await beatOnce(signal);
        } catch {
          waitMs = Math.min(waitMs, delayMs(reconnect, failures++)); // the client has told
        }
        await pause(waitMs, signal);
      }
    },
    options.onError,
  );
}
