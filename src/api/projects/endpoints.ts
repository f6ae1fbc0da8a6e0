/** Projects, their configuration and stash. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { arrayOrPage, id, idPath, limit, pageWish } from '../shapes.ts';

export const projectName = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^/@\p{Cc}]+$/u, 'may contain any printable character except / and @');
const project = z.object({ id, name: z.string(), description: z.string() });
export const maxDescription = 10_000;
export const projectConfig = z.record(z.string(), z.unknown());
const stashPath = z.object({ id, key: z.string().min(1).max(200) });

const upsert = {
  summary: 'Create or change a project; without `config` the old one is kept',
  tag: 'projects',
  allow: ['operator'],
  body: z.strictObject({
    uuid: id.optional(),
    name: projectName,
    description: z.string().max(maxDescription).default(''),
    config: projectConfig.optional(),
  }),
  bodyBytes: 1024 * 1024,
  status: 201,
  answer: project,
  others: { 409: 'another project has that name' },
} as const;

export const projectEndpoints = endpoints({
  'GET /api/projects': {
    summary: 'All projects by name; with `name`, the project of that name',
    tag: 'projects',
    allow: ['viewer', 'operator'],
    query: z.object({ name: z.string().optional(), limit: limit(100), after: z.string().optional() }),
    answer: z.union([z.array(project), project]),
    others: { 404: 'no project has that name' },
  },
  'POST /api/projects': upsert,
  'PUT /api/projects': upsert,
  'GET /api/projects/{id}': {
    summary: 'A project with its counts',
    tag: 'projects',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: z.object({
      ...project.shape,
      num_jobs: z.int(),
      running_tasks: z.int(),
      waiting_tasks: z.int(),
      succeeded_tasks_last_hour: z.int(),
      failed_tasks_last_hour: z.int(),
      error_tasks_last_hour: z.int(),
    }),
  },
  'DELETE /api/projects/{id}': {
    summary: 'Delete a project and its jobs; the history of their runs stays readable',
    tag: 'projects',
    allow: ['operator'],
    params: idPath,
    status: 204,
    answer: 'none',
  },
  'GET /api/projects/{id}/jobs': {
    summary: "A project's jobs by name, each with the results of its runs in the last hour",
    tag: 'projects',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ limit: limit(50), after: z.string().optional(), name: z.string().optional() }),
    answer: z.array(
      z.object({
        job_id: id,
        name: z.string(),
        description: z.string(),
        paused: z.boolean(),
        success: z.int(),
        running: z.int(),
        failure: z.int(),
        waiting: z.int(),
        error: z.int(),
      }),
    ),
  },
  'GET /api/projects/{id}/config': {
    summary: "A project's configuration",
    tag: 'projects',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: projectConfig,
  },
  'GET /int-api/projects/{id}/config': {
    summary: "A project's configuration, for its tasks and for workers that hold a run of it",
    tag: 'tasks and workers',
    allow: ['worker', 'task'],
    params: idPath,
    answer: projectConfig,
  },
  'GET /api/projects/{id}/stash': {
    summary: "The names in a project's stash: the first ten thousand; with `limit` all of them, a page at a time",
    tag: 'stash',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: pageWish,
    answer: arrayOrPage(z.string()),
  },
  'PUT /api/projects/{id}/stash/{key}': {
    summary: "Store bytes in a project's stash, encrypted",
    tag: 'stash',
    allow: ['operator'],
    params: stashPath,
    body: 'bytes',
    status: 201,
    answer: 'none',
  },
  'DELETE /api/projects/{id}/stash/{key}': {
    summary: "Remove an entry of a project's stash",
    tag: 'stash',
    allow: ['operator'],
    params: stashPath,
    status: 204,
    answer: 'none',
  },
  'GET /int-api/projects/{id}/stash/{key}': {
    summary: "Read an entry of the project's stash, from a task of that project",
    tag: 'tasks and workers',
    allow: ['task'],
    params: stashPath,
    answer: 'bytes',
  },
});
