/**
 * The heartbeat: sends the held runs to the API every few seconds (the API sets the interval), which renews their leases. The
 * answer lists runs that are lost or must be killed (I4). The first heartbeat is sent at once and repeated until it is answered.
 * After a failed one the next comes sooner. A heartbeat that is late because this process was blocked is reported.
 */
import type { HeartbeatAnswer, HeldRun, Signals } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

export interface HeartbeatOptions {
  /** Must fail after `withinMs`. */
  beat(holds: readonly HeldRun[], withinMs: number, signal: AbortSignal): Promise<HeartbeatAnswer>;
  holds(): readonly HeldRun[];
  hear(signals: Signals): void;
  /** Called after the first answered heartbeat. */
  onFirst(): void;
  /** This process was blocked for this long. */
  onLate(ms: number): void;
  readonly onError: (error: unknown) => void;
  /** The interval if the API sets none. */
  readonly intervalMs: number;
}

/** The timeout of a heartbeat. */
const maxBeatMs = 5_000;
/** Shorter delays are normal on a busy machine. */
const minLateMs = 1_000;

export function makeHeartbeat(options: HeartbeatOptions): Service {
  let heard = false;
  let { intervalMs } = options;
  let withinMs = maxBeatMs;
  const noteLate = (lateMs: number): void => {
    if (lateMs > Math.max(intervalMs, minLateMs)) options.onLate(lateMs);
  };
  /** A heartbeat that takes longer than its timeout shows that the process was blocked meanwhile. */
  async function beatOnce(signal: AbortSignal): Promise<void> {
    const [sinceMs, timeoutMs] = [performance.now(), withinMs];
    const answer = await options
      .beat(options.holds(), timeoutMs, signal)
      .finally(() => noteLate(performance.now() - sinceMs - timeoutMs));
    options.hear(answer);
    intervalMs = answer.beat_ms ?? options.intervalMs;
    // a hanging heartbeat must leave time for others before the leases expire, and short leases have short intervals
    withinMs = Math.min(maxBeatMs, 2 * (answer.beat_ms ?? maxBeatMs));
    if (!heard) options.onFirst();
    heard = true;
  }
  async function rest(signal: AbortSignal): Promise<void> {
    const sinceMs = performance.now();
    await pause(intervalMs, signal);
    noteLate(performance.now() - sinceMs - intervalMs);
  }
  const { name, start, stop } = loop(
    'heart',
    async (signal) => {
      await beatOnce(signal);
      await rest(signal);
    },
    options.onError,
    (failures) => Math.min(intervalMs, delayMs(reconnect, failures)),
  );
  return {
    name,
    start,
    async stop() {
      await stop();
      heard = false;
    },
  };
}
