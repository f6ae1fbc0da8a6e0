/** One run for the web interface: its history, the other attempts, and its environment. */
import type { ApiHandlers } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import { environmentOfRun } from './environment.ts';
import { historyOf } from './history.ts';
import { listAttempts } from './view-queries.ts';
import { requireRun, renderRun } from './handlers.ts';
import { restrictToOwnRun } from '../tasks/task-scope.ts';

type Keys = `GET /api/runs/{id}/${'history' | 'attempts' | 'environment'}`;

export const runViewHandlers: ApiHandlers<Pick<typeof runEndpoints, Keys>> = {
  'GET /api/runs/{id}/history': async ({ params }, ctx) => ({
    items: await historyOf(ctx, await requireRun(ctx, params.id)),
  }),
  'GET /api/runs/{id}/attempts': async ({ params }, ctx) => {
    const run = await requireRun(ctx, params.id);
    const { task_id: task, instant } = run;
    if (task === null || instant === null) return { items: [renderRun(run)] };
    return { items: (await listAttempts(ctx.db, { task, instant })).map(renderRun) };
  },
  'GET /api/runs/{id}/environment': async ({ params, caller }, ctx) => {
    restrictToOwnRun(caller, params.id);
    return environmentOfRun(ctx, await requireRun(ctx, params.id), caller?.kind === 'task');
  },
};
