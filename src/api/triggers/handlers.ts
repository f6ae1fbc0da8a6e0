/** Forecasts of triggers: previews, the next firing of a job, and the effects of applying a document. */
import type { z } from 'zod';
import { clientGone } from '../../errors.ts';
import type { JobDefinition, TriggerDefinition } from '../../jobs/definition.ts';
import { documentParser } from '../../documents/parser.ts';
import { compileSchedule, nextInstant } from '../../calendar/schedule.ts';
import { formatLocal } from '../../calendar/zone-text.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { Slices } from '../../kernel/process/slices.ts';
import type { Db } from '../../kernel/sql.ts';
import { countLeft } from '../../scheduler/catchup/catchup.ts';
import { findCatchupsOfJob } from '../../scheduler/catchup/queries.ts';
import { type Coming, comingFrom, nextOf, type Outlook, outlookOf } from '../../scheduler/forecast.ts';
import type { PlannedCatchup, TriggerRow } from '../../scheduler/queries.ts';
import { specOf } from '../../scheduler/trigger-schedule.ts';
import { type ApiContext, type ApiHandlers, requireFound } from '../context.ts';
import type { nextFiring, outlook, triggerEndpoints } from './endpoints.ts';
import {
  findJobId,
  findScheduled,
  type KnownJob,
  type KnownTrigger,
  listKnown,
  listScheduled,
  type ScheduledTrigger,
} from './queries.ts';

export const triggerHandlers: ApiHandlers<typeof triggerEndpoints> = {
  'GET /api/triggers/{id}/preview': async ({ params, query }, ctx) => {
    const trigger = requireFound(await findScheduled(ctx.db, params.id), 'trigger', params.id);
    const schedule = compileSchedule(specOf(trigger));
    const first =
      query.after === undefined
        ? nextOf(trigger, schedule, ctx.time.now(), !trigger.paused)
        : nextInstant(schedule, query.after.getTime());
    const coming = comingFrom(trigger, schedule, first, query.count + 1);
    const items = coming.slice(0, query.count).map((each) => renderComing(trigger.timezone, each));
    return {
      trigger_id: trigger.id,
      trigger_name: trigger.name,
      job_id: trigger.job_id,
      paused: trigger.paused,
      timezone: trigger.timezone,
      items,
      next: coming.length > query.count ? (items.at(-1)?.instant ?? null) : null,
    };
  },
};

type NextFiring = z.input<typeof nextFiring>;

/** For each job, the trigger that fires next. A paused job has none. */
export async function nextFirings(ctx: ApiContext, jobs: readonly string[]): Promise<Map<string, NextFiring>> {
  const nowMs = ctx.time.now();
  const first = new Map<string, Coming & { trigger: ScheduledTrigger }>();
  const slices = new Slices();
  for (const trigger of await listScheduled(ctx.db, jobs)) {
    if (trigger.paused) continue;
    if (slices.isOver) await slices.pause();
    const schedule = compileSchedule(specOf(trigger));
    const [next] = comingFrom(trigger, schedule, nextOf(trigger, schedule, nowMs, true), 1);
    const best = first.get(trigger.job_id);
    if (next !== undefined && (best === undefined || next.dueMs < best.dueMs)) {
      first.set(trigger.job_id, { ...next, trigger });
    }
  }
  return new Map(
    [...first].map(([job, { trigger, instantMs, dueMs }]) => [job, renderNext(trigger, instantMs, dueMs)]),
  );
}

function renderNext(trigger: ScheduledTrigger, instantMs: number, dueMs: number): NextFiring {
  return { trigger_id: trigger.id, trigger_name: trigger.name, instant: isoOf(instantMs), due: isoOf(dueMs) };
}

interface Forecast {
  readonly definition: JobDefinition;
  /** Lists begin after this instant. */
  readonly after: Date | undefined;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
}

/** Forecasts the effects of applying the document now. Reads the database before it takes the tenant's turn. */
export async function outlookOfApplying(ctx: ApiContext, forecast: Forecast): Promise<z.input<typeof outlook>> {
  const before = await readBefore(ctx.db, forecast.definition);
  const work = (): Promise<z.input<typeof outlook>> => forecastTriggers(forecast, before, ctx.time.now());
  return documentParser.inTurn(ctx.tenant.id, work, forecast.signal);
}

/** What has been dealt with in another installation, trigger by trigger. */
export interface ForeignMark {
  readonly name: string;
  readonly earliest: Date | null;
  readonly latest: Date | null;
}

/** Forecasts the effects of starting a job that is new here, but whose triggers have fired elsewhere. */
export function outlookOfMarks(
  ctx: ApiContext,
  forecast: Omit<Forecast, 'after'>,
  marks: readonly ForeignMark[],
): Promise<z.input<typeof outlook>> {
  const triggers = marks.map((mark) => ({ ...mark, id: mark.name, removed_at: null }));
  const before = { known: { paused: true, triggers }, catchups: [] };
  const work = (): Promise<z.input<typeof outlook>> =>
    forecastTriggers({ ...forecast, after: undefined }, before, ctx.time.now());
  return documentParser.inTurn(ctx.tenant.id, work, forecast.signal);
}

async function forecastTriggers(
  { definition, after, signal }: Forecast,
  { known, catchups }: Before,
  nowMs: number,
): Promise<z.input<typeof outlook>> {
  const paused = definition.paused ?? known.paused;
  const byName = new Map(known.triggers.map((trigger) => [trigger.name, trigger]));
  const catchupsOf = groupBy(catchups, (row) => row.trigger_id);
  const slices = new Slices();
  const triggers: z.input<typeof outlook>['triggers'] = [];
  for (const wanted of definition.triggers) {
    if (slices.isOver) await slices.pause();
    if (signal.aborted) throw clientGone();
    const before = byName.get(wanted.name);
    const trigger = rowOf(wanted, before, nowMs);
    const schedule = compileSchedule(specOf(trigger));
    const isAlive = before !== undefined && before.removed_at === null && !known.paused;
    const left = before !== undefined && before.removed_at === null ? (catchupsOf.get(before.id) ?? []) : [];
    triggers.push({
      ...renderOutlook(wanted, outlookOf(trigger, schedule, { nowMs, known: isAlive, afterMs: after?.getTime() })),
      under_way: left.reduce((sum, row) => sum + countLeft(row, trigger, schedule, nowMs), 0),
    });
  }
  return { paused, triggers };
}

interface Before {
  readonly known: KnownJob;
  readonly catchups: readonly PlannedCatchup[];
}

async function readBefore(db: Db, definition: JobDefinition): Promise<Before> {
  const job = definition.uuid ?? (await findJobId(db, definition));
  if (job === undefined) return { known: { paused: false, triggers: [] }, catchups: [] };
  const [known, catchups] = await Promise.all([listKnown(db, job), findCatchupsOfJob(db, job)]);
  return { known, catchups };
}

/** The trigger after the apply: the new definition with the marks of the existing trigger. */
function rowOf(wanted: TriggerDefinition, before: KnownTrigger | undefined, nowMs: number): TriggerRow {
  return {
    id: before?.id ?? '',
    job_id: '',
    start_at: new Date(wanted.startMs),
    end_at: wanted.endMs === null ? null : new Date(wanted.endMs),
    period_ms: wanted.periodMs,
    cron: wanted.cron,
    timezone: wanted.timezone,
    offset_ms: wanted.offsetMs,
    catchup: wanted.catchup,
    catchup_window_ms: wanted.catchupWindowMs,
    earliest: before?.earliest ?? null,
    latest: before?.latest ?? null,
    since: new Date(nowMs),
  };
}

function renderOutlook({ name, timezone }: TriggerDefinition, { fires, caughtUp, skipped, next }: Outlook) {
  const last = (ms: number | undefined): string | null => (ms === undefined ? null : isoOf(ms));
  return {
    name,
    fires: fires.map(isoOf),
    caught_up: { ...caughtUp, first: caughtUp.first.map(isoOf), last: last(caughtUp.last) },
    skipped: { total: skipped.total, first: last(skipped.first[0]), last: last(skipped.last) },
    next: next.map((each) => renderComing(timezone, each)),
  };
}

export function renderComing(timezone: string | null, { instantMs, dueMs }: Coming) {
  return { instant: isoOf(instantMs), due: isoOf(dueMs), local: formatLocal(timezone, instantMs) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
