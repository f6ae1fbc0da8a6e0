/**
 * The progress processor: queues retries when they are due, and takes runs back from lost workers. Gateways apply the results
 * of runs (`runs/report.ts`), so a tenant without a scheduler still accepts results.
 */
import { leaseTimes } from '../contract/lease-times.ts';
import { checkpoint } from './checkpoints.ts';
import { all, pause, type Service } from '../kernel/service.ts';
import { anyWithWorkers, nextRetryAt, queueRetries, takeBackRuns } from './queries.ts';
import type { Scheduling } from './scheduling.ts';
import { leasesLost, retried } from './telemetry.ts';

const retryBatch = 1_000;
const retrySweepMs = 5_000;
const leaseSweepMs = 1_000;
/** The wait if no due retry could be queued: another process has locked them, or their tasks are gone. */
const lockedMs = 50;

export function progressProcessor(scheduling: Scheduling): Service {
  return all('progress', [retries(scheduling), leases(scheduling)]);
}

function retries({ ctx, db, time, work, ready, processor }: Scheduling): Service {
  return processor('retries', 'queueing retries', async (signal) => {
    const dueMs = (await nextRetryAt(db))?.getTime() ?? Number.POSITIVE_INFINITY;
    const waitMs = dueMs - time.now();
    if (waitMs > 0) return () => work.retries.wait(Math.min(retrySweepMs, waitMs), signal);
    checkpoint('retries.queue');
    const queued = await queueRetries(db, retryBatch, new Date(time.now()));
    if (queued > 0) checkpoint('retries.queued');
    if (queued > 0) retried.emit(ctx.telemetry, { tenant: ctx.tenant.id, runs: queued });
    ready(queued);
    return queued === 0 ? () => work.retries.wait(lockedMs, signal) : undefined;
  });
}

/** Leases expire only while heartbeats can arrive: not before a gateway has served for the length of a lease (I4). */
function leases(scheduling: Scheduling): Service {
  const { processor, sweepMs } = scheduling;
  return processor('leases', 'sweeping leases', async (signal) => {
    await sweepLeases(scheduling);
    return () => pause(sweepMs(leaseSweepMs), signal);
  });
}

async function sweepLeases({ ctx, db, time, ready }: Scheduling): Promise<void> {
  const { leaseMs } = ctx.settings;
  if (!(await anyWithWorkers(db))) return;
  const serving = await ctx.directory.servingSince();
  if (serving === undefined || serving.getTime() > time.now() - leaseMs) return;
  checkpoint('leases.sweep');
  const { returned, failed, owners } = await takeBackRuns(db, leaseTimes(leaseMs).unlistedMs, new Date(time.now()));
  if (returned + failed === 0) return;
  if (owners !== null) ctx.conductors?.hint(ctx.tenant.id, owners);
  checkpoint('leases.swept');
  ctx.log.warn({ returned, failed }, 'runs taken back from lost workers');
  leasesLost.emit(ctx.telemetry, { tenant: ctx.tenant.id, runs: returned + failed });
  ready(returned + failed);
}
