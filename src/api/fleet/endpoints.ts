/** The installation from the view of a tenant: status, workers, schedulers, and the stash that all projects share. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { runRow } from '../jobs/endpoints.ts';
import { arrayOrPage, id, idPath, instant, pageWish, stateList, time } from '../shapes.ts';

const worker = z.object({
  uuid: id,
  name: z.string(),
  addr: z.string(),
  version: z.string(),
  last_seen_datetime: time,
  running_tasks: z.int(),
  total_tasks: z.int(),
  runtimes: z.array(z.string()),
  /** Runtime → why the worker takes none of its tasks now. Older engines leave it out. */
  unavailable: z.record(z.string(), z.string()).optional(),
  queues: z.array(z.string()),
  status: z.enum(['up', 'gone']),
});

/** A run as Waterwheel shows it below a worker. */
const workerTask = z.object({
  job_id: id,
  job_name: z.string(),
  project_id: id,
  project_name: z.string(),
  task_name: z.string(),
  ...runRow.omit({ name: true }).shape,
});

const key = z.string().min(1).max(200);
const view = { allow: ['viewer', 'operator'] } as const;
const keyPath = z.object({ key });
const jobStashPath = z.object({ id, instant, key });

export const fleetEndpoints = endpoints({
  'GET /healthcheck': { summary: "Waterwheel's health check", tag: 'health', allow: ['anyone'], answer: 'text' },
  'GET /api/status': {
    ...view,
    summary: 'Counts of projects, workers and running tasks',
    tag: 'fleet',
    answer: z.object({ num_projects: z.int(), num_workers: z.int(), running_tasks: z.int() }),
  },
  'GET /api/workers': {
    ...view,
    summary:
      'Workers seen in the last 24 hours: the 1,000 with the latest heartbeats, fewer if they have very many queues; with `limit` all of them, a page at a time',
    tag: 'fleet',
    query: pageWish,
    answer: arrayOrPage(worker),
  },
  'GET /api/workers/{id}': {
    ...view,
    summary: 'A worker and its last 100 runs in this tenant',
    tag: 'fleet',
    params: idPath,
    query: z.object({ state: stateList.optional() }),
    answer: z.object({ ...worker.shape, tasks: z.array(workerTask) }),
  },
  'GET /api/schedulers': {
    ...view,
    summary: "This tenant's schedulers seen in the last hour",
    tag: 'fleet',
    answer: z.array(
      z.object({
        uuid: id,
        version: z.string(),
        last_seen_datetime: time,
        queued_triggers: z.int(),
        waiting_for_trigger_id: id.nullable(),
        waiting_for_trigger_job_id: id.nullable(),
        status: z.enum(['up', 'gone']),
      }),
    ),
  },
  'GET /api/stash': {
    ...view,
    summary: 'The names in the global stash: the first ten thousand; with `limit` all of them, a page at a time',
    tag: 'stash',
    query: pageWish,
    answer: arrayOrPage(z.string()),
  },
  'PUT /api/stash/{key}': {
    summary: 'Store bytes in the global stash, encrypted',
    tag: 'stash',
    allow: ['operator'],
    params: keyPath,
    body: 'bytes',
    status: 201,
    answer: 'none',
  },
  'DELETE /api/stash/{key}': {
    summary: 'Remove an entry of the global stash',
    tag: 'stash',
    allow: ['operator'],
    params: keyPath,
    status: 204,
    answer: 'none',
  },
  'GET /int-api/stash/{key}': {
    summary: 'Read an entry of the global stash, from a task',
    tag: 'tasks and workers',
    allow: ['task'],
    params: keyPath,
    answer: 'bytes',
  },
  'GET /int-api/jobs/{id}/stash/{instant}/': {
    summary: "The names in an instant's stash: the first ten thousand; with `limit` all of them, a page at a time",
    tag: 'stash',
    allow: ['viewer', 'operator', 'task'],
    params: z.object({ id, instant }),
    query: pageWish,
    answer: arrayOrPage(z.string()),
  },
  'GET /int-api/jobs/{id}/stash/{instant}/{key}': {
    summary: "Read an entry of an instant's stash, from a task of that job",
    tag: 'tasks and workers',
    allow: ['task'],
    params: jobStashPath,
    answer: 'bytes',
  },
  'PUT /int-api/jobs/{id}/stash/{instant}/{key}': {
    summary: "Store bytes in an instant's stash, from a task of that job",
    tag: 'tasks and workers',
    allow: ['task'],
    params: jobStashPath,
    body: 'bytes',
    status: 201,
    answer: 'none',
  },
  'DELETE /int-api/jobs/{id}/stash/{instant}/{key}': {
    summary: "Remove an entry of an instant's stash",
    tag: 'stash',
    allow: ['operator'],
    params: jobStashPath,
    status: 204,
    answer: 'none',
  },
});
