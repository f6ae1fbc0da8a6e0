/**
 * Runs: the list, one run, cancel.
 *
 * The list stays fast whatever history lies below it. Filtered by a job or task with few runs, an index finds them all;
 * otherwise a page looks through a bounded window of the newest runs, and a page that comes out short still names where
 * to go on.
 */
import { MillraceError } from '../errors.ts';
import type { Input } from '../http/endpoint.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { type ApiContext, type ApiHandlers, author, found } from './context.ts';
import type { runEndpoints } from './endpoints/runs.ts';
import { findRun, findWindowEnd, type FullRun, haveFewRuns, listRuns, type RunFilter } from './run-queries.ts';
import { type Written, written } from './wire-times.ts';

type Endpoints = typeof runEndpoints;
type Keys = 'GET /api/runs' | 'GET /api/runs/{id}' | 'POST /api/runs/{id}/cancel';

const few = 5_000;
const windowSize = 100_000;

function shown(row: FullRun) {
  const { task_id, task_name, job_id, job_name, project_name, ...run }: Written<FullRun> = written(row);
  const task = task_id === null || task_name === null ? null : { id: task_id, name: task_name };
  const job = job_id === null ? null : { id: job_id, name: job_name ?? '', project: project_name ?? '' };
  return { ...run, task, job };
}

function tasksOfJob(db: Db, job: string): Promise<{ id: string }[]> {
  return db.rows(sql`
    select id
      from task
     where job_id = ${job}`);
}

async function isKnown(db: Db, kind: 'job' | 'task', id: string): Promise<boolean> {
  const query = kind === 'job' ? sql`select 1 from job where id = ${id}` : sql`select 1 from task where id = ${id}`;
  return (await db.maybeOne(query)) !== undefined;
}

type ListQuery = Input<Endpoints['GET /api/runs']>['query'];

/** The tasks asked for, those that are gone included; undefined asks for all. */
async function wantedTasks(db: Db, { job, task }: ListQuery): Promise<string[] | undefined> {
  if (job !== undefined && !(await isKnown(db, 'job', job)))
    throw new MillraceError('not_found', `there is no job ${job}`);
  if (task !== undefined && !(await isKnown(db, 'task', task)))
    throw new MillraceError('not_found', `there is no task ${task}`);
  if (job === undefined) return task === undefined ? undefined : [task];
  const ids = (await tasksOfJob(db, job)).map((row) => row.id);
  return task === undefined ? ids : ids.filter((id) => id === task.toLowerCase());
}

/** Where this page stops looking, if it must: only a filter can make it look far. */
async function windowEnd(db: Db, filter: RunFilter): Promise<string | undefined> {
  const filtered = filter.tasks ?? filter.instant ?? filter.states;
  if (filtered === undefined) return undefined;
  if (filter.tasks !== undefined && (await haveFewRuns(db, filter, few))) return undefined;
  return findWindowEnd(db, filter.before, windowSize);
}

async function list({ query }: Input<Endpoints['GET /api/runs']>, ctx: ApiContext) {
  const filter = {
    tasks: await wantedTasks(ctx.db, query),
    instant: query.instant,
    states: query.state,
    before: query.cursor,
    from: undefined,
    limit: query.limit + 1,
  };
  const from = await windowEnd(ctx.db, filter);
  const rows = await listRuns(ctx.db, { ...filter, from });
  const items = rows.slice(0, query.limit).map(shown);
  return { items, next: rows.length > query.limit ? (items.at(-1)?.id ?? null) : (from ?? null) };
}

export async function knownRun(ctx: ApiContext, id: string): Promise<FullRun> {
  return found(await findRun(ctx.db, id), 'run', id);
}

type Outcome = 'cancelled' | 'cancelling' | 'finished';

/** One statement, so one commit with the events it appends. */
async function cancelRun(db: Db, run: string, who: { actor: string; at: Date }): Promise<Outcome> {
  const row = await db.one<{ outcome: Outcome }>(sql`
    select outcome
      from cancel_run(${run}, ${who.actor}, ${who.at})`);
  return row.outcome;
}

async function cancel({ params, caller }: Input<Endpoints['POST /api/runs/{id}/cancel']>, ctx: ApiContext) {
  await knownRun(ctx, params.id);
  const outcome = await cancelRun(ctx.db, params.id, author(ctx, caller));
  if (outcome === 'cancelling') {
    const { id, lease } = await knownRun(ctx, params.id);
    ctx.broker.cancel({ tenant: ctx.tenant.name, run: id, lease });
  }
  if (outcome === 'cancelled') {
    ctx.wake.send(ctx.tenant.id, 'events');
    // a limit that it held may have let another through
    ctx.broker.offer(ctx.tenant, 1);
  }
  return { id: params.id, outcome };
}

export const runHandlers: ApiHandlers<Pick<Endpoints, Keys>> = {
  'GET /api/runs': list,
  'GET /api/runs/{id}': async ({ params, caller }, ctx) => {
    if (caller?.kind === 'task' && caller.run !== params.id.toLowerCase()) {
      throw new MillraceError('forbidden', 'a task may only look at its own run');
    }
    return shown(await knownRun(ctx, params.id));
  },
  'POST /api/runs/{id}/cancel': cancel,
};
