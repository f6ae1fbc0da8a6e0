/**
 * Dispatch, the seed's execution processor: offers ready runs to the broker, and again now and then, lest a wake-up was lost;
 * as often it has workers told of runs that they are to kill.
 */
import { checkpoint } from '../kernel/checkpoint.ts';
import type { Service } from '../kernel/service.ts';
import { tellKilled } from './claim.ts';
import { anyReady } from './queries.ts';
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
  let toldMs = 0;
  return processor('dispatch', sweepEveryMs, 'offering runs', async (signal) => {
    const rung = await work.dispatch.wait(sweepMs(sweepEveryMs), signal);
    const lanes = readied.take();
    if (!signal.aborted && time.now() - toldMs >= sweepEveryMs) {
      toldMs = time.now();
      await tellKilled(ctx);
    }
    if (rung) ctx.wake.send(ctx.tenant.id, 'events');
    if (signal.aborted) return;
    const ready = rung || (await anyReady(db));
    onLook(ready);
    if (!ready) return;
    stir();
    checkpoint('dispatch.offer');
    ctx.broker.offer(ctx.tenant, lanes);
  });
}
