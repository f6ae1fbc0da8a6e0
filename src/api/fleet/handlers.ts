/** The installation from the view of a tenant: its counts, workers and schedulers. */
import type { SchedulerInfo, WorkerInfo } from '../../contract/context.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { type ApiContext, type ApiHandlers, requireFound } from '../context.ts';
import type { fleetEndpoints } from './endpoints.ts';
import { listRunsOfWorker } from '../runs/queries.ts';
import { toWire } from '../wire-times.ts';

type Endpoints = typeof fleetEndpoints;

const minuteMs = 60_000;
/** As in Waterwheel: how long after its last heartbeat each is still listed (`listedMs`), and still counted as up (`upMs`). */
export const fleetTimes = {
  workers: { listedMs: 24 * 60 * minuteMs, upMs: minuteMs },
  schedulers: { listedMs: 60 * minuteMs, upMs: minuteMs },
} as const;
const { workers, schedulers } = fleetTimes;

function ago(ctx: ApiContext, ms: number): Date {
  return new Date(ctx.time.now() - ms);
}

function countProjects(db: Db): Promise<{ n: number }> {
  return db.one(sql`select count(*)::integer as n from project where deleted_at is null`);
}

function countRunning(db: Db): Promise<{ n: number }> {
  return db.one(sql`select count(*)::integer as n from live where worker_id is not null`);
}

function jobsOfTriggers(db: Db, triggers: readonly string[]): Promise<{ id: string; job_id: string }[]> {
  return db.rows(sql`
    select id, job_id
      from trigger
     where id = any (${triggers}::uuid[])`);
}

function status(lastSeenAt: Date, upSince: Date): 'up' | 'gone' {
  return lastSeenAt >= upSince ? 'up' : 'gone';
}

function renderWorker(ctx: ApiContext, worker: WorkerInfo) {
  return {
    uuid: worker.id,
    name: worker.name,
    addr: worker.addr,
    version: worker.version,
    last_seen_datetime: worker.lastSeenAt.toISOString(),
    running_tasks: worker.running,
    total_tasks: worker.places,
    runtimes: [...worker.runtimes],
    unavailable: { ...worker.unavailable },
    queues: [...worker.queues],
    status: status(worker.lastSeenAt, ago(ctx, workers.upMs)),
  };
}

function renderScheduler(ctx: ApiContext, scheduler: SchedulerInfo, jobs: ReadonlyMap<string, string>) {
  return {
    uuid: scheduler.id,
    version: scheduler.version,
    last_seen_datetime: scheduler.lastSeenAt.toISOString(),
    queued_triggers: scheduler.queuedTriggers,
    waiting_for_trigger_id: scheduler.nextTriggerId,
    waiting_for_trigger_job_id: jobs.get(scheduler.nextTriggerId ?? '') ?? null,
    status: status(scheduler.lastSeenAt, ago(ctx, schedulers.upMs)),
  };
}

export interface FleetPicture {
  /** A text that changes when workers or schedulers come, go, or get other work. */
  readonly fleet: string;
  /** A text that changes when a scheduler comes or goes. */
  readonly scheduler: string;
}

export async function fleetPicture(ctx: ApiContext): Promise<FleetPicture> {
  const [crew, lead] = await Promise.all([
    ctx.directory.workers(ago(ctx, workers.listedMs)),
    ctx.directory.schedulers(ago(ctx, schedulers.listedMs)),
  ]);
  const leading = lead.map((scheduler) => renderScheduler(ctx, scheduler, new Map()));
  const shown = [...crew.map((worker) => renderWorker(ctx, worker)), ...leading];
  return {
    // a heartbeat alone is no change
    fleet: JSON.stringify(shown.map((each) => ({ ...each, last_seen_datetime: undefined }))),
    scheduler: JSON.stringify(leading.map(({ uuid, status }) => [uuid, status])),
  };
}

export const fleetHandlers: ApiHandlers<Omit<Endpoints, Extract<keyof Endpoints, `${string}/stash${string}`>>> = {
  'GET /healthcheck': async () => 'OK',
  'GET /api/status': async (_, ctx) => {
    const [projects, running, seen] = await Promise.all([
      countProjects(ctx.db),
      countRunning(ctx.db),
      ctx.directory.workers(ago(ctx, workers.upMs)),
    ]);
    return { num_projects: projects.n, num_workers: seen.length, running_tasks: running.n };
  },
  'GET /api/workers': async ({ query: { limit, cursor } }, ctx) => {
    const since = ago(ctx, workers.listedMs);
    const render = (worker: WorkerInfo) => renderWorker(ctx, worker);
    if (limit === undefined && cursor === undefined) return (await ctx.directory.workers(since)).map(render);
    const page = await ctx.directory.workerPage({ since, cursor, limit: limit ?? 1_000 });
    return { items: page.workers.map(render), next: page.next };
  },
  'GET /api/workers/{id}': async ({ params, query }, ctx) => {
    const id = params.id.toLowerCase();
    const worker = requireFound(await ctx.directory.worker(id), 'worker', id);
    const tasks = await listRunsOfWorker(ctx.db, { worker: id, states: query.state, upTo: worker.lastSeenAt });
    return { ...renderWorker(ctx, worker), tasks: tasks.map(toWire) };
  },
  'GET /api/schedulers': async (_, ctx) => {
    const seen = await ctx.directory.schedulers(ago(ctx, schedulers.listedMs));
    const next = seen.flatMap((scheduler) => scheduler.nextTriggerId ?? []);
    const jobs = new Map((await jobsOfTriggers(ctx.db, next)).map((row) => [row.id, row.job_id]));
    return seen.map((scheduler) => renderScheduler(ctx, scheduler, jobs));
  },
};
