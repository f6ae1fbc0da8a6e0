/** The triggers of a job, each with its next firings and the number of instants left to catch up. */
import type { Input } from '../../http/endpoint.ts';
import { compileSchedule } from '../../calendar/schedule.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { Slices } from '../../kernel/process/slices.ts';
import { countLeft } from '../../scheduler/catchup/catchup.ts';
import { findCatchupsOfJob } from '../../scheduler/catchup/queries.ts';
import { comingFrom, nextOf } from '../../scheduler/forecast.ts';
import type { PlannedCatchup } from '../../scheduler/queries.ts';
import { specOf } from '../../scheduler/trigger-schedule.ts';
import type { ApiContext } from '../context.ts';
import type { jobViewEndpoints } from './view-endpoints.ts';
import { listTriggers } from './queries.ts';
import { requireJob } from './handlers.ts';
import { listScheduled, type ScheduledTrigger } from '../triggers/queries.ts';
import { renderComing } from '../triggers/handlers.ts';
import { toWire } from '../wire-times.ts';

/** Maximum firings of all triggers together, because each takes time to compute. */
const maxFirings = 2_000;

export async function firingsOf(
  { params, query }: Input<(typeof jobViewEndpoints)['GET /api/jobs/{id}/firings']>,
  ctx: ApiContext,
) {
  const { id, paused } = await requireJob(ctx, params.id);
  const [rows, scheduled, catchups] = await Promise.all([
    listTriggers(ctx.db, id),
    listScheduled(ctx.db, [id]),
    findCatchupsOfJob(ctx.db, id),
  ]);
  const left = groupBy(catchups, (row) => row.trigger_id);
  const triggers = new Map(scheduled.map((trigger) => [trigger.id, trigger]));
  const count = Math.max(1, Math.min(query.count, Math.floor(maxFirings / Math.max(1, rows.length))));
  const items = [];
  const slices = new Slices();
  for (const row of rows) {
    if (slices.isOver) await slices.pause();
    const trigger = triggers.get(row.trigger_id);
    if (trigger === undefined) continue;
    const firings = outlookOf(trigger, left.get(trigger.id) ?? [], { count, nowMs: ctx.time.now() });
    items.push({ ...toWire(row), ...firings });
  }
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
    next: next.map((each) => renderComing(trigger.timezone, each)),
    catching_up: catchups.reduce((sum, row) => sum + countLeft(row, trigger, schedule, nowMs), 0),
  };
}
