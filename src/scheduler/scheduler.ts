/** A tenant's scheduler: the five processors of the seed as services, and its word about itself. */
import type { EngineContext } from '../contract/engine.ts';
import { all, every, type Service } from '../kernel/service.ts';
import { backfillService } from './backfills.ts';
import { catchupService } from './catchup-service.ts';
import { dispatch } from './dispatch.ts';
import { progressProcessor } from './progress.ts';
import { housekeeping } from './prune.ts';
import { makeScheduling } from './scheduling.ts';
import { tokenProcessor } from './tokens.ts';
import { TriggerProcessor } from './triggers.ts';
import { updateProcessor } from './updates.ts';
import { vacuumService } from './vacuum.ts';

const statusEveryMs = 1_000;

export function makeScheduler(ctx: EngineContext): Service {
  const scheduling = makeScheduling(ctx);
  const triggers = new TriggerProcessor(scheduling);
  const status = every(
    statusEveryMs,
    'status',
    async () => ctx.directory.noteScheduler(triggers.status),
    scheduling.fault('telling its status'),
  );
  return all('scheduler', [
    dispatch(scheduling),
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
}
