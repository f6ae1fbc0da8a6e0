/** A tenant's scheduler: the five processors of the seed as services, and its word about itself. */
import type { EngineContext, Scheduler } from '../contract/engine.ts';
import { all, every } from '../kernel/service.ts';
import { backfillService } from './backfills.ts';
import { catchupService } from './catchup-service.ts';
import { dispatch } from './dispatch.ts';
import { progressProcessor } from './progress.ts';
import { housekeeping } from './prune.ts';
import { makeScheduling, type Scheduling } from './scheduling.ts';
import { tokenProcessor } from './tokens.ts';
import { TriggerProcessor } from './triggers.ts';
import { updateProcessor } from './updates.ts';
import { vacuumService } from './vacuum.ts';

const statusEveryMs = 1_000;

export function makeScheduler(ctx: EngineContext): Scheduler {
  const scheduling = makeScheduling(ctx);
  const triggers = new TriggerProcessor(scheduling);
  const dispatching = dispatch(scheduling);
  const status = every(
    statusEveryMs,
    'status',
    async () => ctx.directory.noteScheduler({ ...triggers.status, ready: dispatching.ready() }),
    scheduling.fault('telling its status'),
  );
  const services = all('scheduler', [
    dispatching,
    progressProcessor(scheduling),
    tokenProcessor(scheduling),
    updateProcessor(scheduling),
    triggers.service,
    catchupService(scheduling),
    backfillService(scheduling),
    vacuumService(scheduling),
    status,
    housekeeping(scheduling),
  ]);
  return { ...services, probe: () => probe(scheduling), faults: () => scheduling.faults.current() };
}

async function probe({ ctx, pulse }: Scheduling): Promise<void> {
  const stuck = pulse.stuck().map(({ part, forMs }) => `${part} (${Math.round(forMs / 1_000)} s)`);
  if (stuck.length > 0) throw new Error(`these have not come round: ${stuck.join(', ')}`);
  await ctx.pool.query('select 1');
}
