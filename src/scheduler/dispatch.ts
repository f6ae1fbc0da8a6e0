/**
 * Dispatch, the seed's execution processor: offers ready runs to the broker, and again now and then, lest a wake-up was lost;
 * as often it has workers told of runs that they are to kill.
 */
import { checkpoint } from '../kernel/checkpoint.ts';
import type { Service } from '../kernel/service.ts';
import { tellKilled } from './claim.ts';
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
  let lookedMs = 0;
  let wasRung = false;
  const offer = (lanes: readonly string[] | undefined): void => {
    stir();
    checkpoint('dispatch.offer');
    ctx.broker.offer(ctx.tenant, lanes);
  };
  return processor('dispatch', sweepEveryMs, 'offering runs', async (signal) => {
    const rung = await work.dispatch.wait(sweepMs(sweepEveryMs), signal);
    if (rung) {
      ctx.wake.send(ctx.tenant.id, 'events');
      offer(readied.take());
      // what was just offered would be found once more
      if (!wasRung) lookedMs = time.now();
    }
    wasRung = rung;
    // a wait that was not cut short was long enough, though the clock may stand still
    if (signal.aborted || (rung && time.now() - lookedMs < sweepEveryMs)) return;
    lookedMs = time.now();
    const { lanes, killed } = await lookForWork(db);
    if (killed) await tellKilled(ctx);
    const ready = lanes === undefined || lanes.length > 0;
    onLook(ready);
    if (ready) offer(lanes);
  });
}
