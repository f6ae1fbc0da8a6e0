/**
 * The heartbeat: tells the API every few seconds (as often as it wishes) which runs are held, which renews their leases,
 * and hears which are lost or to be killed (I4). The first one goes out at once and is repeated until it is heard; after
 * a failed one the next comes sooner. One that comes late because nothing in this process got to run is told.
 */
import type { HeartbeatAnswer, HeldRun, Signals } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

export interface HeartOptions {
  /** One that takes longer than `withinMs` is to fail. */
  beat(holds: readonly HeldRun[], withinMs: number, signal: AbortSignal): Promise<HeartbeatAnswer>;
  holds(): readonly HeldRun[];
  hear(signals: Signals): void;
  /** After the first one that was heard. */
  onFirst(): void;
  /** This process did nothing for so long. */
  onLate(ms: number): void;
  readonly onError: (error: unknown) => void;
  /** Where the API does not say. */
  readonly intervalMs: number;
}

/** A heartbeat that takes longer is given up, and the next one sent. */
const longestBeatMs = 5_000;
/** A busy machine is no news. */
const tellLateMs = 1_000;

export function makeHeart(options: HeartOptions): Service {
  let heard = false;
  let { intervalMs } = options;
  let withinMs = longestBeatMs;
  async function beatOnce(signal: AbortSignal): Promise<void> {
    const answer = await options.beat(options.holds(), withinMs, signal);
    options.hear(answer);
    intervalMs = answer.beat_ms ?? options.intervalMs;
    // one that hangs must leave time for others before the leases run out, and short ones have short intervals
    withinMs = Math.min(longestBeatMs, 2 * (answer.beat_ms ?? longestBeatMs));
    if (!heard) options.onFirst();
    heard = true;
  }
  async function rest(signal: AbortSignal): Promise<void> {
    const sinceMs = performance.now();
    await pause(intervalMs, signal);
    const lateMs = performance.now() - sinceMs - intervalMs;
    if (lateMs > Math.max(intervalMs, tellLateMs)) options.onLate(lateMs);
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
