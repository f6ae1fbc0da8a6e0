/**
 * Runs: the list, one run, cancel.
 *
 * The list stays fast with any amount of history. A page with a filter scans a bounded window. It may therefore be short, and
 * still have a `next`.
 */
import { MillraceError } from '../../errors.ts';
import type { Input } from '../../http/endpoint.ts';
import { isId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { type ApiContext, type ApiHandlers, author, badRequest } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import { findEndFloor, findWindowEnd, firstId, listRuns, listRunsOfTasks, type Place } from './list-queries.ts';
import { findRun, type FullRun } from './queries.ts';
import { type Written, toWire } from '../wire-times.ts';

type Endpoints = typeof runEndpoints;
type Keys = 'GET /api/runs' | 'POST /api/runs/{id}/cancel';

/** Maximum runs of the tenant that a page scans for matches. */
const windowSize = 100_000;
/** The same for runs of a job or task. Each task may have to be scanned that far. */
const taskWindow = (tasks: number): number => Math.min(20_000, Math.floor(200_000 / tasks));

export function renderRun(row: FullRun) {
  const { task_id, task_name, job_id, job_name, project_name, ...run }: Written<FullRun> = toWire(row);
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

/** The requested tasks, including removed ones; undefined: all tasks. */
async function wantedTasks(db: Db, { job, task }: ListQuery): Promise<string[] | undefined> {
  if (job !== undefined && !(await isKnown(db, 'job', job)))
    throw new MillraceError('not_found', `job not found: ${job}`);
  if (task !== undefined && !(await isKnown(db, 'task', task)))
    throw new MillraceError('not_found', `task not found: ${task}`);
  if (job === undefined) return task === undefined ? undefined : [task];
  const ids = (await tasksOfJob(db, job)).map((row) => row.id);
  return task === undefined ? ids : ids.filter((id) => id === task.toLowerCase());
}

type Page = { readonly items: ReturnType<typeof renderRun>[]; readonly next: string | null };

/** Limits the window only with a filter, because other pages do not scan far. */
async function listOfTenant({ instant, state: states, cursor, limit }: ListQuery, ctx: ApiContext): Promise<Page> {
  if (cursor !== undefined && !isId(cursor)) throw badCursor();
  const from = instant || states ? await findWindowEnd(ctx.db, cursor, windowSize) : undefined;
  const rows = await listRuns(ctx.db, { instant, states, before: cursor, from, limit: limit + 1 });
  const items = rows.slice(0, limit).map(renderRun);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : (from ?? null) };
}

async function listOfTasks(tasks: readonly string[], query: ListQuery, ctx: ApiContext): Promise<Page> {
  const { instant, state: states, limit } = query;
  const after = query.cursor === undefined ? undefined : placeOf(query.cursor);
  const size = Math.max(limit + 1, states ? taskWindow(tasks.length) : 0);
  const from = instant ? undefined : await findEndFloor(ctx.db, { tasks, after }, size);
  const rows = await listRunsOfTasks(ctx.db, { tasks, instant, states, after, from, limit: limit + 1 });
  const last = rows[limit - 1];
  const rest: Place | undefined = from && { part: 'ended', at: from, id: firstId };
  const next = rows.length > limit && last ? endOf(last) : rest;
  return { items: rows.slice(0, limit).map(renderRun), next: next ? cursorOf(next) : null };
}

const endOf = ({ id, finished_at: at }: FullRun): Place =>
  at === null ? { part: 'live', id } : { part: 'ended', at, id };

const cursorOf = (place: Place): string => `${place.part === 'live' ? 'live' : place.at.getTime()}.${place.id}`;

function placeOf(cursor: string): Place {
  const [, at = '', id = ''] = /^(live|\d{1,15})\.(.*)$/.exec(cursor) ?? [];
  if (!isId(id)) throw badCursor();
  return at === 'live' ? { part: 'live', id } : { part: 'ended', at: new Date(Number(at)), id };
}

function badCursor(): MillraceError {
  return badRequest('query.cursor', 'is not the `next` of a page of this list');
}

async function list({ query }: Input<Endpoints['GET /api/runs']>, ctx: ApiContext): Promise<Page> {
  const tasks = await wantedTasks(ctx.db, query);
  return tasks === undefined ? listOfTenant(query, ctx) : listOfTasks(tasks, query, ctx);
}

export async function requireRun(ctx: ApiContext, id: string): Promise<FullRun> {
  const run = await findRun(ctx.db, id);
  if (run !== undefined) return run;
  throw new MillraceError('not_found', `run not found: ${id}; retention may have deleted it`);
}

type Outcome = 'cancelled' | 'cancelling' | 'finished';

/** One statement, so the cancellation and its events are one commit. */
function cancelRun(
  db: Db,
  run: string,
  who: { actor: string; at: Date },
): Promise<{ outcome: Outcome; owners: (string | null)[] | null }> {
  return db.one(sql`
    select outcome, owners
      from cancel_run(${run}, ${who.actor}, ${who.at})`);
}

async function cancel({ params, caller }: Input<Endpoints['POST /api/runs/{id}/cancel']>, ctx: ApiContext) {
  await requireRun(ctx, params.id);
  const { outcome, owners } = await cancelRun(ctx.db, params.id, author(ctx, caller));
  // the execution whose node's run it was has an answer
  if (owners !== null) ctx.conductors?.hint(ctx.tenant.id, owners);
  if (outcome === 'cancelling') {
    ctx.hints.send('events');
    const { id, lease } = await requireRun(ctx, params.id);
    ctx.hints.send('cancel', { tenant: ctx.tenant.id, run: id, lease });
  }
  if (outcome === 'cancelled') {
    ctx.hints.send('events');
    // the limit that it held may now admit another run
    ctx.hints.send('ready');
  }
  return { id: params.id, outcome };
}

export const runHandlers: ApiHandlers<Pick<Endpoints, Keys>> = {
  'GET /api/runs': list,
  'POST /api/runs/{id}/cancel': cancel,
};
