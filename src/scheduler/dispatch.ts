/**
 * Dispatch, the seed's execution processor: offers ready runs to the broker, and again now and then, lest a wake-up was lost;
 * as often it has workers told of runs that they are to kill.
 */
import { checkpoint } from '../kernel/checkpoint.ts';
import { type Service, steady } from '../kernel/service.ts';
import { tellKilled } from './claim.ts';
import { anyReady } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

const sweepMs = 1_000;

export function dispatch({ ctx, db, time, work, fault }: Scheduling): Service {
  let toldMs = 0;
  return steady(
    'dispatch',
    async (signal) => {
      const rung = await work.dispatch.wait(sweepMs, signal);
      if (!signal.aborted && time.now() - toldMs >= sweepMs) {
        toldMs = time.now();
        await tellKilled(ctx);
      }
      if (rung) ctx.wake.send(ctx.tenant.id, 'events');
      if (signal.aborted || !(rung || (await anyReady(db)))) return;
      checkpoint('dispatch.offer');
      ctx.broker.offer(ctx.tenant, 1);
    },
    fault('offering runs'),
  );
}
