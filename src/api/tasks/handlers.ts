/** Single tasks: definition, activation of one or many tokens, runs of a token; and triggers with their instants. */
import type { Input } from '../../http/endpoint.ts';
import { cacheOf, readQueuedDefinitions } from '../../jobs/task-definitions.ts';
import { viewBlock } from '../../runtimes/kinds.ts';
import { declaredIn } from '../../runtimes/task/environment.ts';
import { asWritten } from '../../runtimes/work.ts';
import { activate, activateMatching } from '../instants/activation.ts';
import { type ApiContext, type ApiHandlers, requireFound } from '../context.ts';
import { states } from '../shapes.ts';
import type { taskEndpoints } from './endpoints.ts';
import { listRunsOfToken } from '../runs/queries.ts';
import { findTask, findTrigger, listFired, taskExisted } from './queries.ts';
import { restrictTask } from './task-scope.ts';
import { toWire } from '../wire-times.ts';

type Endpoints = typeof taskEndpoints;

async function definitionOf(ctx: ApiContext, id: string) {
  const { version, ...row } = requireFound(await findTask(ctx.db, id), 'task', id);
  const keys = [{ tenant: ctx.tenant.id, task: id, version }];
  const [read] = await readQueuedDefinitions(ctx.db, { tenant: ctx.tenant.id }, keys, cacheOf(ctx.pool));
  if (read === undefined)
    throw new Error(`the stored document of job ${row.job_id} does not contain task ${row.task_name}`);
  const { runtime, timeout_ms: timeoutMs } = read.definition;
  const { image, command } = viewBlock(runtime, asWritten);
  return {
    ...row,
    runtime: runtime.kind,
    queue: read.queue,
    image,
    args: image === null ? null : [...(command ?? [])],
    env: image === null ? null : Object.entries(declaredIn(runtime)).map(envLine),
    timeout: { secs: Math.floor(timeoutMs / 1_000), nanos: (timeoutMs % 1_000) * 1_000_000 },
  };
}

/** Shows the name of a stash entry, never its value (I12). */
function envLine([name, value]: readonly [string, string | { stash: string }]): string {
  return typeof value === 'string' ? `${name}=${value}` : `${name}=stash:${value.stash}`;
}

const failed = ['failure', 'timeout', 'error'] as const;

async function activateMany(input: Input<Endpoints['POST /api/tasks/{id}/tokens']>, ctx: ApiContext) {
  const { first: after, last: before, only_failed, priority } = input.body;
  const task = input.params.id;
  requireFound(await findTask(ctx.db, task), 'task', task);
  const wanted = { task, after, before, states: only_failed === true ? failed : states };
  return { cleared: await activateMatching(ctx, input.caller, wanted, priority) };
}

export const taskHandlers: ApiHandlers<Endpoints> = {
  'GET /api/tasks/{id}': ({ params }, ctx) => definitionOf(ctx, params.id),
  'GET /int-api/tasks/{id}': async ({ params, caller }, ctx) => {
    await restrictTask(ctx, caller, { task: params.id });
    return definitionOf(ctx, params.id);
  },
  'PUT /api/tasks/{id}/tokens/{instant}': async (input, ctx) => {
    const { id: task, instant } = input.params;
    return { runs: await activate(ctx, input.caller, { task, instants: [instant], priority: input.body.priority }) };
  },
  'POST /api/tasks/{id}/tokens': activateMany,
  'GET /api/tasks/{id}/runs/{instant}': async ({ params }, ctx) => {
    requireFound((await taskExisted(ctx.db, params.id)) || undefined, 'task', params.id);
    return (await listRunsOfToken(ctx.db, params.id, params.instant)).map(toWire);
  },
  'GET /api/triggers/{id}': async ({ params, query }, ctx) => {
    const trigger = requireFound(await findTrigger(ctx.db, params.id), 'trigger', params.id);
    const times = await listFired(ctx.db, { id: trigger.trigger_id, job: trigger.job_id }, query);
    return { ...toWire(trigger), times: times.map(toWire) };
  },
};
