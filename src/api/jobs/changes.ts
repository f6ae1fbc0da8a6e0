/** Changes of a whole job: delete, pause, run now. Each is one transaction with its events, followed by wake-ups. */
import { MillraceError } from '../../errors.ts';
import { recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import type { Db } from '../../kernel/sql.ts';
import { type ApiContext, author, requireFound } from '../context.ts';
import { announceDeletion, endJobs } from './deletion.ts';
import type { jobEndpoints } from './endpoints.ts';
import {
  activateTokens,
  hasParams,
  holdJob,
  insertParams,
  listEntries,
  lockJob,
  parkRuns,
  setPaused,
  setTasksPaused,
  unparkRuns,
} from './change-queries.ts';

type Endpoints = typeof jobEndpoints;

export async function removeJob(input: Input<Endpoints['DELETE /api/jobs/{id}']>, ctx: ApiContext): Promise<void> {
  const who = author(ctx, input.caller);
  const { job, running } = await recording(ctx.db, who, async (tx) => {
    const job = requireFound(await lockJob(tx, input.params.id), 'job', input.params.id);
    return { job, running: await endJobs(tx, [job], who) };
  });
  announceDeletion(ctx, [job], running);
}

export async function pauseJob(input: Input<Endpoints['PUT /api/jobs/{id}/paused']>, ctx: ApiContext): Promise<void> {
  const { paused } = input.body;
  const who = author(ctx, input.caller);
  const changed = await recording(ctx.db, who, async (tx) => {
    const job = requireFound(await lockJob(tx, input.params.id), 'job', input.params.id);
    if (job.paused === paused) return undefined;
    await setPaused(tx, job.id, paused, who.at);
    await setTasksPaused(tx, job.id, paused);
    const freed = paused ? 0 : await unparkRuns(tx, job.id);
    if (paused) await parkRuns(tx, job.id, who.at);
    const type = paused ? 'job.paused' : 'job.unpaused';
    tx.record('millrace_jobs', { type, subject: job.id, body: { name: job.name } });
    return { id: job.id, freed };
  });
  if (changed === undefined) return;
  ctx.hints.send('triggers', [changed.id]);
  if (changed.freed > 0) ctx.hints.send('ready');
  for (const kind of ['tokens', 'events'] as const) ctx.hints.send(kind);
}

type RunInput = Input<Endpoints['POST /api/jobs/{id}/run']>;

/** Maximum runs listed in an event. A job may begin with thousands of tasks. */
const maxRunsInEvent = 100;

export async function runJobNow(input: RunInput, ctx: ApiContext): Promise<{ instant: string; runs: string[] }> {
  const who = author(ctx, input.caller);
  const { params, priority } = input.body;
  const started = await recording(ctx.db, who, async (tx) => {
    const job = requireFound(await holdJob(tx, input.params.id), 'job', input.params.id);
    if (job.paused) throw new MillraceError('conflict', `the job ${job.name} is paused: unpause it first`);
    const tasks = await entryTasks(tx, job);
    const wished = input.body.instant;
    const instant =
      wished === undefined
        ? await freeInstant(tx, job.id, who.at, params)
        : await claimInstant(tx, job.id, wished, params);
    const runs = await activateTokens(tx, { tasks, instants: tasks.map(() => instant), priority, ...who });
    // readers load hundreds of events at a time, so bodies must be small; each run has its own event
    const body = { name: job.name, instant: instant.toISOString(), priority, runs: runs.slice(0, maxRunsInEvent) };
    tx.record('millrace_jobs', { type: 'job.run', subject: job.id, body });
    return { instant: instant.toISOString(), runs };
  });
  ctx.hints.send('ready');
  ctx.hints.send('events');
  return started;
}

/**
 * The tasks that wait for no other task of the job. If all tasks wait, because the job depends on its own earlier runs: those
 * that wait for none at the same instant.
 */
async function entryTasks(tx: Db, job: { id: string; name: string }): Promise<string[]> {
  const tasks = await listEntries(tx, job.id);
  if (tasks.length === 0) throw new MillraceError('conflict', `the job ${job.name} has no tasks to run`);
  const first = tasks.filter((task) => !task.waits);
  const entries = first.length > 0 ? first : tasks.filter((task) => !task.waits_now);
  if (entries.length > 0) return entries.map((task) => task.id);
  throw new MillraceError(
    'conflict',
    `every task of the job ${job.name} waits for another task of the job, so none can start: activate one of them instead`,
  );
}

async function claimInstant(tx: Db, job: string, instant: Date, params: object): Promise<Date> {
  const text = JSON.stringify(params);
  if ((await insertParams(tx, job, instant, text)) || (await hasParams(tx, job, instant, text))) return instant;
  throw new MillraceError('conflict', `${instant.toISOString()} was already started with other parameters`);
}

const maxSteps = 1_000;

/** Now, or the next free millisecond, so that each run of the job has its own instant. */
async function freeInstant(tx: Db, job: string, at: Date, params: object): Promise<Date> {
  const text = JSON.stringify(params);
  for (let step = 0; step < maxSteps; step++) {
    const instant = new Date(at.getTime() + step);
    if (await insertParams(tx, job, instant, text)) return instant;
  }
  throw new MillraceError('conflict', 'the job is run too often to find a free instant; give one');
}
