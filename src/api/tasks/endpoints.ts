/** Single tasks and triggers: definitions, activation, instants. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { runRow, triggerRow } from '../jobs/endpoints.ts';
import { id, idPath, instant, limit, priority, time } from '../shapes.ts';

/** Waterwheel's task definition. `image`, `args` and `env` are null for tasks without an image. */
const taskDefinition = z.object({
  task_id: id,
  task_name: z.string(),
  job_id: id,
  job_name: z.string(),
  project_id: id,
  project_name: z.string(),
  runtime: z.string(),
  queue: z.string(),
  threshold: z.int(),
  image: z.string().nullable(),
  args: z.array(z.string()).nullable(),
  env: z.array(z.string()).nullable(),
  paused: z.boolean(),
  timeout: z.object({ secs: z.int(), nanos: z.int() }),
});

const tokenPath = z.object({ id, instant });

export const taskEndpoints = endpoints({
  'GET /api/tasks/{id}': {
    summary: "A task's definition",
    tag: 'tasks',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: taskDefinition,
  },
  'GET /int-api/tasks/{id}': {
    summary: "A task's definition, for the task itself and for workers that hold a run of it",
    tag: 'tasks and workers',
    allow: ['worker', 'task'],
    params: idPath,
    answer: taskDefinition,
  },
  'PUT /api/tasks/{id}/tokens/{instant}': {
    summary: 'Activate: run the task for that instant at once, even if it waits for others',
    tag: 'tasks',
    allow: ['operator'],
    params: tokenPath,
    body: z.strictObject({ priority: priority.default('high') }).default({ priority: 'high' }),
    status: 201,
    answer: z.object({ runs: z.array(id) }),
  },
  'POST /api/tasks/{id}/tokens': {
    summary: 'Activate many existing tokens: at least one of first, last (both exclusive) and only_failed',
    tag: 'tasks',
    allow: ['operator'],
    params: idPath,
    body: z
      .strictObject({
        priority: priority.default('backfill'),
        first: instant.optional(),
        last: instant.optional(),
        only_failed: z.boolean().optional(),
      })
      .refine((b) => b.first !== undefined || b.last !== undefined || b.only_failed !== undefined, {
        error: 'give at least one of first, last and only_failed',
      }),
    answer: z.object({ cleared: z.int() }),
  },
  'GET /api/tasks/{id}/runs/{instant}': {
    summary: 'The runs of one token',
    tag: 'tasks',
    allow: ['viewer', 'operator'],
    params: tokenPath,
    answer: z.array(runRow),
  },
  'GET /api/triggers/{id}': {
    summary: 'A trigger, with the results of its latest instants',
    tag: 'triggers',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ before: instant.optional(), limit: limit(100) }),
    answer: z.object({
      ...triggerRow.shape,
      job_id: id,
      job_name: z.string(),
      project_id: id,
      project_name: z.string(),
      times: z.array(
        z.object({
          trigger_datetime: time,
          success: z.int(),
          running: z.int(),
          failure: z.int(),
          waiting: z.int(),
        }),
      ),
    }),
  },
});
