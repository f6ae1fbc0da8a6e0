/**
 * The start page of an operator. Late and coming triggers are computed from schedules and marks, as in the scheduler. There
 * are far too many triggers to check all, so the scheduler names the next ones with its heartbeat.
 */
import type { CallAnswer } from '../../http/client.ts';
import { compileSchedule, nextInstant } from '../../calendar/schedule.ts';
import { specOf } from '../../scheduler/trigger-schedule.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import { countedUpTo, type overviewEndpoints } from './endpoints.ts';
import type { Part } from '../explain/findings.ts';
import { listIncidents } from './incidents.ts';
import { fleetTimes } from '../fleet/handlers.ts';
import * as queries from './queries.ts';

type Endpoints = Pick<typeof overviewEndpoints, 'GET /api/overview'>;
type Overview = CallAnswer<Endpoints['GET /api/overview']>;
type Late = Overview['late'][number];
type Coming = Overview['next'][number];

/** A longer delay counts as late; a shorter one may be caused by load. */
const lateTriggerMs = 5_000;
const lateRunMs = 60_000;

const jobOf = (part: Part) => ({ id: part.job_id, name: part.job_name, project: part.project_name });

function lateRun({ run, instant, since, ...task }: queries.LateRun): Late {
  const times = { instant: instant?.toISOString() ?? null, since: since.toISOString() };
  return { kind: 'run', id: run, name: task.name, job: jobOf(task), ...times };
}

function failing({
  run,
  state,
  instant,
  reason,
  finished_at,
  ...task
}: queries.FailingTask): Overview['failing'][number] {
  return {
    run,
    state,
    job: jobOf(task),
    task: { id: task.id, name: task.name },
    instant: instant?.toISOString() ?? null,
    reason,
    finished_at: finished_at.toISOString(),
  };
}

/** The first unhandled instant of the trigger, if it is late. */
function lateInstant(trigger: queries.NextTrigger, nowMs: number): Late[] {
  const schedule = compileSchedule(specOf(trigger));
  const latestMs = trigger.latest?.getTime() ?? schedule.startMs - 1;
  const instantMs = nextInstant(schedule, Math.max(latestMs, trigger.last_fired?.getTime() ?? latestMs));
  const dueMs = (instantMs ?? Number.POSITIVE_INFINITY) + trigger.offset_ms;
  if (instantMs === undefined || dueMs >= nowMs - lateTriggerMs) return [];
  const times = { instant: new Date(instantMs).toISOString(), since: new Date(dueMs).toISOString() };
  return [{ kind: 'trigger', id: trigger.id, name: trigger.name, job: jobOf(trigger), ...times }];
}

/** The first instant that is due after now. */
function comingInstant(trigger: queries.NextTrigger, nowMs: number): Coming[] {
  const instantMs = nextInstant(compileSchedule(specOf(trigger)), nowMs - trigger.offset_ms);
  if (instantMs === undefined) return [];
  const times = {
    instant: new Date(instantMs).toISOString(),
    due: new Date(instantMs + trigger.offset_ms).toISOString(),
  };
  return [{ trigger: { id: trigger.id, name: trigger.name }, job: jobOf(trigger), ...times }];
}

function firstBy<T>(items: readonly T[], timeOf: (item: T) => string): T[] {
  return items.toSorted((a, b) => Date.parse(timeOf(a)) - Date.parse(timeOf(b))).slice(0, queries.maxShown);
}

async function healthOf(ctx: ApiContext): Promise<Overview['health']> {
  const nowMs = ctx.time.now();
  const ago = (ms: number): Date => new Date(nowMs - ms);
  // measured alone, so that other statements do not delay it
  const latency_ms = await queries.measureLatency(ctx.db);
  const [size_bytes, schedulers, workers] = await Promise.all([
    queries.databaseSize(ctx.db),
    ctx.directory.schedulers(ago(fleetTimes.schedulers.listedMs)),
    ctx.directory.workers(ago(fleetTimes.workers.listedMs)),
  ]);
  const up = workers.filter(({ lastSeenAt }) => lastSeenAt >= ago(fleetTimes.workers.upMs));
  const alive = schedulers.filter(({ lastSeenAt }) => lastSeenAt >= ago(fleetTimes.schedulers.upMs));
  return {
    database: { latency_ms, size_bytes },
    schedulers: {
      up: alive.length,
      gone: schedulers.length - alive.length,
      queued_triggers: sum(alive.map((scheduler) => scheduler.queuedTriggers)),
    },
    workers: {
      up: up.length,
      gone: workers.length - up.length,
      places: sum(up.map((worker) => worker.places)),
      taken: sum(up.map((worker) => worker.running)),
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

async function readNextTriggers(ctx: ApiContext): Promise<queries.NextTrigger[]> {
  const ids = await ctx.directory.nextTriggers();
  return ids.length === 0 ? [] : queries.listTriggers(ctx.db, ids);
}

async function lateAmong(ctx: ApiContext, triggers: readonly queries.NextTrigger[], nowMs: number): Promise<Late[]> {
  const runs = await queries.listLateRuns(ctx.db, new Date(nowMs - lateRunMs));
  const late = [...triggers.flatMap((trigger) => lateInstant(trigger, nowMs)), ...runs.map(lateRun)];
  return firstBy(late, (each) => each.since);
}

/** A text that changes when something becomes late, for which there is no event. */
export async function latePicture(ctx: ApiContext): Promise<string> {
  const late = await lateAmong(ctx, await readNextTriggers(ctx), ctx.time.now());
  return JSON.stringify(late.map(({ id, instant }) => [id, instant]));
}

export const overviewHandlers: ApiHandlers<Endpoints> = {
  'GET /api/overview': async (_, ctx) => {
    const nowMs = ctx.time.now();
    const health = await healthOf(ctx);
    const triggers = await readNextTriggers(ctx);
    const [counts, late, failed, incidents] = await Promise.all([
      queries.countLive(ctx.db),
      lateAmong(ctx, triggers, nowMs),
      queries.listFailing(ctx.db),
      listIncidents(ctx.db),
    ]);
    // without a scheduler, nothing will fire
    const next = health.schedulers.up === 0 ? [] : triggers.flatMap((trigger) => comingInstant(trigger, nowMs));
    return {
      at: new Date(nowMs).toISOString(),
      ...counts,
      counted_up_to: countedUpTo,
      late,
      failing: failed.map(failing),
      incidents,
      next: firstBy(next, (each) => each.due),
      health,
    };
  },
};
