/** A job's triggers, each with its next firings and how much it has still to catch up. */
import type { Input } from '../http/endpoint.ts';
import { compileSchedule } from '../jobs/schedule.ts';
import { groupBy } from '../kernel/group.ts';
import { countLeft } from '../scheduler/catchup.ts';
import { catchupsOfJob } from '../scheduler/catchup-queries.ts';
import { comingFrom, nextOf } from '../scheduler/outlook.ts';
import type { PlannedCatchup } from '../scheduler/queries.ts';
import { specOf } from '../scheduler/spec.ts';
import type { ApiContext } from './context.ts';
import type { jobViewEndpoints } from './endpoints/job-views.ts';
import { listTriggers } from './job-queries.ts';
import { knownJob } from './jobs.ts';
import { listScheduled, type ScheduledTrigger } from './trigger-queries.ts';
import { writtenComing } from './triggers.ts';
import { written } from './wire-times.ts';

/** Of all triggers together: each takes a moment to work out. */
const mostFirings = 2_000;

export async function firingsOf(
  { params, query }: Input<(typeof jobViewEndpoints)['GET /api/jobs/{id}/firings']>,
  ctx: ApiContext,
) {
  const { id, paused } = await knownJob(ctx, params.id);
  const [rows, scheduled, catchups] = await Promise.all([
    listTriggers(ctx.db, id),
    listScheduled(ctx.db, [id]),
    catchupsOfJob(ctx.db, id),
  ]);
  const left = groupBy(catchups, (row) => row.trigger_id);
  const triggers = new Map(scheduled.map((trigger) => [trigger.id, trigger]));
  const count = Math.max(1, Math.min(query.count, Math.floor(mostFirings / Math.max(1, rows.length))));
  const items = rows.flatMap((row) => {
    const trigger = triggers.get(row.trigger_id);
    if (trigger === undefined) return [];
    return [{ ...written(row), ...outlookOf(trigger, left.get(trigger.id) ?? [], { count, nowMs: ctx.time.now() }) }];
  });
  return { paused, items };
}

function outlookOf(
  trigger: ScheduledTrigger,
  catchups: readonly PlannedCatchup[],
  { count, nowMs }: { count: number; nowMs: number },
) {
  const schedule = compileSchedule(specOf(trigger));
  const next = comingFrom(trigger, schedule, nextOf(trigger, schedule, nowMs, !trigger.paused), count);
  return {
    next: next.map((each) => writtenComing(trigger.timezone, each)),
    catching_up: catchups.reduce((sum, row) => sum + countLeft(row, trigger, schedule, nowMs), 0),
  };
}
