/**
 * A bell that wake-ups ring: whoever reads something to its end waits here for more. A ring while nobody waits is kept,
 * so what is written between the last read and the wait is not missed; many rings are one.
 */
import type { Wake, WakeKind } from '../contract/engine.ts';

export interface Bell {
  /** True when it was rung; false when `timeoutMs` passed or the signal aborted first. One waiter at a time. */
  wait(timeoutMs: number, signal: AbortSignal): Promise<boolean>;
  /** Stops listening. */
  close(): void;
}

export function hangBell(wake: Wake, tenantId: string, kinds: readonly WakeKind[]): Bell {
  let rung = false;
  let waiter: (() => void) | undefined;
  const stops = kinds.map((kind) =>
    wake.on(tenantId, kind, () => {
      rung = true;
      waiter?.();
    }),
  );
  return {
    async wait(timeoutMs, signal) {
      if (!rung && !signal.aborted) {
        await waitFor(timeoutMs, signal, (wakeUp) => {
          waiter = wakeUp;
        });
        waiter = undefined;
      }
      const heard = rung;
      rung = false;
      return heard;
    },
    close: () => stops.forEach((stop) => stop()),
  };
}

async function waitFor(timeoutMs: number, signal: AbortSignal, arm: (wakeUp: () => void) => void): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(wakeUp, timeoutMs);
    signal.addEventListener('abort', wakeUp, { once: true });
    arm(wakeUp);
    function wakeUp(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', wakeUp);
      resolve();
    }
  });
}
