/** Tasks one by one: their definition, activation of one or many tokens, a token's runs; and triggers with their instants. */
import type { Input } from '../http/endpoint.ts';
import type { EnvDefinition, TaskDefinition } from '../jobs/definition.ts';
import { parseJob } from '../jobs/parse-job.ts';
import { type ApiContext, type ApiHandlers, author, found } from './context.ts';
import type { taskEndpoints } from './endpoints/tasks.ts';
import { activateTokens } from './job-change-queries.ts';
import { listRunsOfToken } from './run-queries.ts';
import {
  findTask,
  findTrigger,
  holdTask,
  lastInstant,
  listFired,
  nextTokens,
  taskExisted,
  type TaskRow,
} from './task-queries.ts';
import { restrictTask } from './task-scope.ts';
import { written } from './wire-times.ts';

type Endpoints = typeof taskEndpoints;

async function definitionOf(ctx: ApiContext, id: string) {
  const { definition, ...row } = found(await findTask(ctx.db, id), 'task', id);
  const { runtime, queue, timeoutMs } = partOfDocument(definition, row);
  const docker = runtime.kind === 'docker' ? runtime : undefined;
  return {
    ...row,
    runtime: runtime.kind,
    queue,
    image: docker?.image ?? null,
    args: docker ? [...docker.args] : null,
    env: docker ? docker.env.map(envLine) : null,
    timeout: { secs: Math.floor(timeoutMs / 1_000), nanos: (timeoutMs % 1_000) * 1_000_000 },
  };
}

function partOfDocument(document: unknown, row: Omit<TaskRow, 'definition'>): TaskDefinition {
  const parsed = parseJob(document);
  const task = parsed.ok ? parsed.job.tasks.find((candidate) => candidate.name === row.task_name) : undefined;
  if (task === undefined)
    throw new Error(`the stored document of job ${row.job_id} does not hold task ${row.task_name}`);
  return task;
}

/** A value from the stash is named, never shown (I12). */
function envLine(env: EnvDefinition): string {
  return 'stash' in env ? `${env.name}=stash:${env.stash}` : `${env.name}=${env.value}`;
}

interface Wanted {
  readonly task: string;
  readonly instants: readonly Date[];
  readonly priority: string;
}

/** One commit; then the workers are told. */
async function activate(ctx: ApiContext, input: Pick<Input<never>, 'caller'>, wanted: Wanted): Promise<string[]> {
  const { task, instants, priority } = wanted;
  const runs = await ctx.db.transaction(async (tx) => {
    found((await holdTask(tx, task)) || undefined, 'task', task);
    const tasks = instants.map(() => task);
    return activateTokens(tx, { tasks, instants, priority, ...author(ctx, input.caller) });
  });
  ctx.broker.offer(ctx.tenant, runs.length);
  ctx.wake.send(ctx.tenant.id, 'events');
  return runs;
}

const batchSize = 1_000;
const failed = new Set(['failure', 'timeout', 'error']);

/**
 * In batches, each a commit of its own, so that no lock is held for long. Tokens that come into being meanwhile, beyond
 * the newest there is at the start, are left alone: a task that feeds itself would never end.
 */
async function activateMany(input: Input<Endpoints['POST /api/tasks/{id}/tokens']>, ctx: ApiContext) {
  const { first, last, only_failed, priority } = input.body;
  const task = input.params.id;
  found(await findTask(ctx.db, task), 'task', task);
  const upTo = await lastInstant(ctx.db, { task, after: first, before: last });
  let cleared = 0;
  let after = first;
  while (upTo !== undefined) {
    const batch = await nextTokens(ctx.db, { task, after, upTo, limit: batchSize });
    const chosen = only_failed === true ? batch.filter((token) => failed.has(token.state)) : batch;
    const instants = chosen.map((token) => token.instant);
    if (instants.length > 0) cleared += (await activate(ctx, input, { task, instants, priority })).length;
    after = batch.at(-1)?.instant;
    if (batch.length < batchSize) break;
  }
  return { cleared };
}

export const taskHandlers: ApiHandlers<Endpoints> = {
  'GET /api/tasks/{id}': ({ params }, ctx) => definitionOf(ctx, params.id),
  'GET /int-api/tasks/{id}': async ({ params, caller }, ctx) => {
    await restrictTask(ctx.db, caller, { task: params.id });
    return definitionOf(ctx, params.id);
  },
  'PUT /api/tasks/{id}/tokens/{instant}': async (input, ctx) => {
    const { id: task, instant } = input.params;
    return { runs: await activate(ctx, input, { task, instants: [instant], priority: input.body.priority }) };
  },
  'POST /api/tasks/{id}/tokens': activateMany,
  'GET /api/tasks/{id}/runs/{instant}': async ({ params }, ctx) => {
    found((await taskExisted(ctx.db, params.id)) || undefined, 'task', params.id);
    return (await listRunsOfToken(ctx.db, params.id, params.instant)).map(written);
  },
  'GET /api/triggers/{id}': async ({ params, query }, ctx) => {
    const trigger = found(await findTrigger(ctx.db, params.id), 'trigger', params.id);
    const times = await listFired(ctx.db, { id: trigger.trigger_id, job: trigger.job_id }, query);
    return { ...written(trigger), times: times.map(written) };
  },
};
