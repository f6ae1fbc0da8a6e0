/** Counts the attempts of each subscriber by minute, for charts, until they are written. */
import type { SubscriberMinute } from '../../store.ts';

const minuteMs = 60_000;

interface Attempt {
  readonly subscriber: string;
  readonly atMs: number;
  readonly isSuccess: boolean;
  /** From the acceptance of each event to this attempt. */
  readonly latenciesMs: readonly number[];
}

export class SubscriberMinutes {
  #minutes = new Map<string, SubscriberMinute>();

  count({ subscriber, atMs, isSuccess, latenciesMs }: Attempt): void {
    const minute = Math.floor(atMs / minuteMs) * minuteMs;
    const key = `${subscriber} ${minute}`;
    const known = this.#minutes.get(key) ?? {
      subscriber,
      atMs: minute,
      events: 0,
      failed: 0,
      latencyMs: 0,
      worstMs: 0,
    };
    this.#minutes.set(
      key,
      isSuccess
        ? {
            ...known,
            events: known.events + latenciesMs.length,
            latencyMs: known.latencyMs + latenciesMs.reduce((sum, ms) => sum + ms, 0),
            worstMs: latenciesMs.reduce((worst, ms) => Math.max(worst, ms), known.worstMs),
          }
        : { ...known, failed: known.failed + 1 },
    );
  }

  /** Returns what was counted since the last call. */
  take(): readonly SubscriberMinute[] {
    const taken = [...this.#minutes.values()];
    this.#minutes = new Map();
    return taken;
  }
}
