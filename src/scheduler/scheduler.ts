/**
 * A tenant's scheduler: starts and stops its processors (triggers, updates, tokens, progress, dispatch) and its background
 * work (catch-up, backfills, retention, vacuum, outbox, work for conductors, the history of lag) as services, and publishes its status every second.
 */
import { lagSampleMs, sampleLag } from '../bus/lag.ts';
import type { EngineContext } from '../contract/context.ts';
import type { PartFault, Scheduler } from '../contract/engine.ts';
import { every, together } from '../kernel/service.ts';
import { backfillService } from './catchup/backfills.ts';
import { catchupService } from './catchup/service.ts';
import { dispatch } from './dispatch.ts';
import { flowsOutlook } from './flows-outlook.ts';
import { outboxProcessor } from './outbox.ts';
import { progressProcessor } from './progress.ts';
import { housekeeping } from './retention/prune.ts';
import { Scheduling } from './scheduling.ts';
import { tokenProcessor } from './tokens.ts';
import { TriggerProcessor } from './triggers.ts';
import { updateProcessor } from './job-updates.ts';
import { vacuumService } from './retention/vacuum.ts';

const statusEveryMs = 1_000;

export function makeScheduler(ctx: EngineContext): Scheduler {
  const scheduling = new Scheduling(ctx);
  const triggers = new TriggerProcessor(scheduling);
  const dispatching = dispatch(scheduling);
  const outlook = flowsOutlook(scheduling);
  const status = every(
    statusEveryMs,
    'status',
    async () => ctx.directory.noteScheduler({ ...triggers.status, ready: dispatching.ready(), flows: outlook.seen() }),
    scheduling.fault('writing its status'),
  );
  const lag = every(
    lagSampleMs,
    'lag',
    async () => void (await sampleLag(scheduling.db, ctx.time.now())),
    scheduling.fault('recording the lag of subscribers'),
  );
  // services stop at the same time, each after its present pass: none needs another to stop
  const services = together('scheduler', [
    dispatching,
    progressProcessor(scheduling),
    tokenProcessor(scheduling),
    updateProcessor(scheduling),
    triggers.service,
    catchupService(scheduling),
    backfillService(scheduling),
    vacuumService(scheduling),
    status,
    lag,
    housekeeping(scheduling),
    outboxProcessor(scheduling),
    outlook,
  ]);
  const { faults } = scheduling;
  return {
    ...services,
    start: () => faults.attempt(starting, () => services.start()),
    probe: async () => refuseHanging(faults.current()),
    faults: () => faults.current(),
  };
}

/** Starting is a part of its own, because the tables that it reads may be locked. */
const starting = { doing: 'starting', isVital: true };
/** Shells of older builds end a scheduler whose probe fails, after this time without progress. Newer ones read `faults`. */
const hangingMs = 60_000;

function refuseHanging(faults: readonly PartFault[]): void {
  const hanging = faults.filter(({ isVital, underWayMs = 0 }) => isVital && underWayMs >= hangingMs);
  if (hanging.length > 0) throw new Error(`no progress for a minute: ${hanging.map(({ doing }) => doing).join(', ')}`);
}
