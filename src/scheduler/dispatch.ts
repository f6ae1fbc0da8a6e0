/**
 * Dispatch: offers ready runs to the broker. A sweep every second offers them again, in case a wake-up was lost, and tells
 * workers which of their runs to kill.
 */
import { checkpoint } from './checkpoints.ts';
import type { Service } from '../kernel/service.ts';
import { hintCancellations } from '../runs/claim.ts';
import { lookForWork } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

const sweepEveryMs = 1_000;

export interface Dispatch extends Service {
  /** Whether runs were ready when it last looked. */
  readonly ready: () => boolean;
}

export function dispatch(scheduling: Scheduling): Dispatch {
  let ready = false;
  return { ...offering(scheduling, (found) => (ready = found)), ready: () => ready };
}

function offering(scheduling: Scheduling, onLook: (ready: boolean) => void): Service {
  const { ctx, db, time, work, readied, sweepMs, stir, processor } = scheduling;
  let lookedMs = Number.NEGATIVE_INFINITY;
  /** The last two waits were ended by the bell. */
  let rung = false;
  let wasRung = false;
  const offer = (lanes: readonly string[] | undefined): void => {
    stir();
    checkpoint('dispatch.offer');
    ctx.hints.send('ready', lanes);
  };
  const wait = async (signal: AbortSignal): Promise<void> => {
    wasRung = rung;
    rung = await work.dispatch.wait(sweepMs(sweepEveryMs), signal);
  };
  return processor('dispatch', 'offering runs', async (signal) => {
    if (rung) {
      ctx.hints.send('events');
      offer(readied.take());
      // what was just offered would be found once more
      if (!wasRung) lookedMs = time.now();
    }
    // a wait that was not cut short was long enough, though the clock may stand still
    if (signal.aborted || (rung && time.now() - lookedMs < sweepEveryMs)) return () => wait(signal);
    const { lanes, killed } = await lookForWork(db);
    if (killed) await hintCancellations(ctx);
    lookedMs = time.now();
    const ready = lanes === undefined || lanes.length > 0;
    onLook(ready);
    if (ready) offer(lanes);
    return () => wait(signal);
  });
}
