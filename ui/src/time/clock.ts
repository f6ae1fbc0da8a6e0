/** The current time for elements that tick: one timer per interval, and only while elements use it. */
import { useSyncExternalStore } from 'react';

interface Clock {
  readonly subscribe: (listener: () => void) => () => void;
  readonly now: () => number;
}

function makeClock(everyMs: number): Clock {
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let now = Date.now();
  const tick = (): void => {
    now = Date.now();
    for (const listener of listeners) listener();
  };
  return {
    now: () => now,
    subscribe: (listener) => {
      if (listeners.size === 0) {
        now = Date.now();
        timer = setInterval(tick, everyMs);
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) clearInterval(timer);
      };
    },
  };
}

const clocks = { second: makeClock(1_000), fewSeconds: makeClock(5_000) };

export function useNow(pace: keyof typeof clocks): number {
  return useSyncExternalStore(clocks[pace].subscribe, clocks[pace].now);
}
