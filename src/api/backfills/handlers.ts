/** Creates, reads, lists and cancels backfills. The scheduler fires the instants of the plan that a dry run lists. */
import { MillraceError } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { clearBackfill } from '../../scheduler/catchup/backfills.ts';
import { planBackfill, previewBackfill, totalOf } from './plan.ts';
import {
  type BackfillRow,
  findBackfill,
  findBackfillNamed,
  findTally,
  insertBackfill,
  listBackfills,
  listBackfillTriggers,
  markCancelled,
  overlapOf,
} from './queries.ts';
import { type ApiContext, type ApiHandlers, author, badRequest, requireFound } from '../context.ts';
import type { backfillEndpoints } from './endpoints.ts';
import { holdJob, type LockedJob } from '../jobs/change-queries.ts';
import { requireJob } from '../jobs/handlers.ts';

type Endpoints = typeof backfillEndpoints;
type Wish = Input<Endpoints['POST /api/jobs/{id}/backfill']>['body'];

/** Maximum finished runs that are counted while a backfill is running, to keep the request fast. */
const maxCountedRuns = 20_000;

function outline(row: BackfillRow) {
  return {
    id: row.id,
    job: { id: row.job_id, name: row.job_name, project: row.project },
    name: row.name,
    triggers: row.triggers,
    first: row.first_at.toISOString(),
    last: row.last_at.toISOString(),
    order: row.policy,
    priority: row.priority,
    only: row.only_missing ? ('missing' as const) : ('all' as const),
    state: row.state,
    instants: { total: row.total, fired: row.fired, skipped: row.skipped },
    created_at: row.created_at.toISOString(),
    ended_at: row.ended_at?.toISOString() ?? null,
    by: row.actor,
  };
}

const noRuns = {
  waiting: 0,
  ready: 0,
  running: 0,
  retry: 0,
  success: 0,
  failure: 0,
  timeout: 0,
  error: 0,
  cancelled: 0,
};

/** Counts runs before it reads the instants, so that no run belongs to an instant that is not counted as fired. */
async function readView(ctx: ApiContext, id: string) {
  const { counts, whole } = requireFound(await findTally(ctx.db, id, maxCountedRuns), 'backfill', id);
  return { ...outline(await requireBackfill(ctx, id)), runs: { ...noRuns, ...counts }, runs_complete: whole };
}

async function requireBackfill(ctx: ApiContext, id: string): Promise<BackfillRow> {
  return requireFound(await findBackfill(ctx.db, id), 'backfill', id);
}

async function make(input: Input<Endpoints['POST /api/jobs/{id}/backfill']>, ctx: ApiContext): Promise<Response> {
  if (input.body.dry_run) return Response.json(await preview(input.params.id, input.body, ctx));
  const who = author(ctx, input.caller);
  const { id, made } = await recording(ctx.db, who, async (tx) => {
    const job = requireFound(await holdJob(tx, input.params.id), 'job', input.params.id);
    const existing = await findSameNamed(tx, job, input.body);
    const id = existing ?? (await insert(tx, job, input.body, who));
    if (id !== undefined) return { id, made: existing === undefined };
    // a concurrent request has just committed a backfill of that name
    return {
      id: requireFound(await findSameNamed(tx, job, input.body), 'backfill', input.body.name ?? ''),
      made: false,
    };
  });
  if (made) for (const kind of ['triggers', 'events'] as const) ctx.hints.send(kind);
  return Response.json(await readView(ctx, id), { status: made ? 201 : 200 });
}

async function preview(id: string, wish: Wish, ctx: ApiContext) {
  await requireJob(ctx, id);
  const parts = planBackfill(await listBackfillTriggers(ctx.db, id), wish, ctx.time.now());
  const how = { limit: wish.limit, onlyMissing: wish.only === 'missing' };
  const { total, items, next } = await previewBackfill(ctx.db, parts, how);
  return { dry_run: true, instants: { total }, items, next };
}

/** Finds the backfill of the requested name. A repeated request gets the same backfill; another range is a conflict. */
async function findSameNamed(tx: Recording, job: LockedJob, wish: Wish): Promise<string | undefined> {
  const row = wish.name === undefined ? undefined : await findBackfillNamed(tx, job.id, wish.name);
  if (row === undefined) return undefined;
  const named = wish.triggers === undefined ? row.triggers : [...new Set(wish.triggers)].sort();
  const same =
    row.first_at.getTime() === wish.first.getTime() &&
    row.last_at.getTime() === wish.last.getTime() &&
    row.policy === wish.order &&
    row.priority === wish.priority &&
    row.only_missing === (wish.only === 'missing') &&
    row.triggers.toSorted().join('\0') === named.toSorted().join('\0');
  if (same) return row.id;
  throw new MillraceError('conflict', `the job ${job.name} has another backfill of the name ${wish.name}: ${row.id}`);
}

/** Returns undefined if a concurrent request has created a backfill of that name. */
async function insert(
  tx: Recording,
  job: LockedJob,
  wish: Wish,
  who: { actor: string; at: Date },
): Promise<string | undefined> {
  const parts = planBackfill(await listBackfillTriggers(tx, job.id), wish, who.at.getTime());
  const total = totalOf(parts);
  if (total === 0) throw badRequest('body.first', `no trigger of the job ${job.name} has a due instant in this range`);
  await checkOverlap(tx, job, wish);
  const { first, last, order, priority } = wish;
  const wished = { name: wish.name, first, last, order, priority, onlyMissing: wish.only === 'missing' };
  const id = await insertBackfill(tx, { job: job.id, ...wished, parts, ...who });
  const body = { job: job.id, job_name: job.name, ...wished, instants: total };
  if (id !== undefined) tx.record('millrace_jobs', { type: 'backfill.created', subject: id, body });
  return id;
}

/** Only instants of priority `backfill` always queue; an overlap rule may drop others. */
async function checkOverlap(tx: Recording, job: LockedJob, { priority }: Wish): Promise<void> {
  const overlap = priority === 'backfill' ? 'queue' : await overlapOf(tx, job.id);
  if (overlap === 'queue') return;
  const message = `the job ${job.name} has overlap: ${overlap}, which drops instants of priority ${priority}; use backfill`;
  throw new MillraceError('conflict', message);
}

async function cancel({ params, caller }: Input<Endpoints['POST /api/backfills/{id}/cancel']>, ctx: ApiContext) {
  const who = author(ctx, caller);
  const row = await requireBackfill(ctx, params.id);
  const marked = await recording(ctx.db, who, async (tx) => {
    if (!(await markCancelled(tx, row.id))) return false;
    const body = { job: row.job_id, job_name: row.job_name, name: row.name };
    tx.record('millrace_jobs', { type: 'backfill.cancelled', subject: row.id, body });
    return true;
  });
  if (marked) {
    // if this process dies here, the scheduler completes the cancellation
    await clearBackfill(ctx.db, row.id, who);
    ctx.hints.send('events');
    // the limits that its runs held may now admit other runs
    ctx.hints.send('ready');
  }
  return readView(ctx, row.id);
}

type Page = { readonly limit: number; readonly cursor?: string | undefined };

async function pageOf(ctx: ApiContext, { limit, cursor }: Page, job?: string) {
  const filter = { ...(job === undefined ? {} : { job }), before: cursor, limit: limit + 1 };
  const rows = await listBackfills(ctx.db, filter);
  const items = rows.slice(0, limit).map(outline);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

export const backfillHandlers: ApiHandlers<Endpoints> = {
  'POST /api/jobs/{id}/backfill': make,
  'GET /api/jobs/{id}/backfills': async ({ params, query }, ctx) => {
    await requireJob(ctx, params.id);
    return pageOf(ctx, query, params.id);
  },
  'GET /api/backfills': ({ query }, ctx) => pageOf(ctx, query),
  'GET /api/backfills/{id}': ({ params }, ctx) => readView(ctx, params.id),
  'POST /api/backfills/{id}/cancel': cancel,
};
