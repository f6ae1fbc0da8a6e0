/** A tenant's scheduler: the five processors of the seed as services, and its word about itself. */
import type { EngineContext } from '../contract/engine.ts';
import { all, every, type Service } from '../kernel/service.ts';
import { catchupService } from './catchup.ts';
import { dispatch } from './dispatch.ts';
import { progressProcessor } from './progress.ts';
import { pruneTenant } from './prune.ts';
import { makeScheduling } from './scheduling.ts';
import { tokenProcessor } from './tokens.ts';
import { TriggerProcessor } from './triggers.ts';
import { updateProcessor } from './updates.ts';

const statusEveryMs = 1_000;
const pruneEveryMs = 3_600_000;

export function makeScheduler(ctx: EngineContext): Service {
  const scheduling = makeScheduling(ctx);
  const triggers = new TriggerProcessor(scheduling);
  const status = every(
    statusEveryMs,
    'status',
    async () => ctx.directory.noteScheduler(triggers.status),
    scheduling.fault('telling its status'),
  );
  const housekeeping = every(
    pruneEveryMs,
    'housekeeping',
    async () => void (await pruneTenant(ctx)),
    scheduling.fault('pruning'),
  );
  return all('scheduler', [
    dispatch(scheduling),
    progressProcessor(scheduling),
    tokenProcessor(scheduling),
    updateProcessor(scheduling),
    triggers.service,
    catchupService(scheduling),
    status,
    housekeeping,
  ]);
}
