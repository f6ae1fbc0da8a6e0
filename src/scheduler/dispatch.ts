/** Dispatch, the seed's execution processor: offers ready runs to the broker, and again now and then, lest a wake-up was lost. */
import { checkpoint } from '../kernel/checkpoint.ts';
import { type Service, steady } from '../kernel/service.ts';
import { anyReady } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

const sweepMs = 1_000;

export function dispatch({ ctx, db, work, fault }: Scheduling): Service {
  return steady(
    'dispatch',
    async (signal) => {
      const rung = await work.dispatch.wait(sweepMs, signal);
      if (rung) ctx.wake.send(ctx.tenant.id, 'events');
      if (signal.aborted || !(rung || (await anyReady(db)))) return;
      checkpoint('dispatch.offer');
      ctx.broker.offer(ctx.tenant, 1);
    },
    fault('offering runs'),
  );
}
