/** Job documents, and views of a job: its graph, triggers, tokens, runs and durations. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { maxParamsBytes, paramsFault } from '../../jobs/params.ts';
import { nextFiring, outlook } from '../triggers/endpoints.ts';
import { fault, flag, id, idPath, instant, limit, priority, state, stateList, time } from '../shapes.ts';

const job = z.object({
  id,
  project_id: id,
  name: z.string(),
  description: z.string(),
  paused: z.boolean(),
});

const change = z.object({
  path: z.string(),
  change: z.enum(['added', 'removed', 'changed']),
  before: z.unknown().optional(),
  after: z.unknown().optional(),
});

const applied = z.object({
  id,
  version: z.int(),
  /** `unchanged`: the job already has this document. */
  outcome: z.enum(['created', 'changed', 'unchanged']),
  dry_run: z.boolean(),
  warnings: z.array(fault),
  changes: z.array(change),
  /** What fires, is caught up or is skipped now. Left out by a real apply of more than 100 triggers. */
  outlook: outlook.optional(),
});

const apply = {
  summary:
    'Create or replace a job from its document (JSON or YAML); `dry_run` only reports what would change ' +
    'and fire, with the first hundred instants to be caught up, or the first hundred `after` one',
  tag: 'jobs',
  allow: ['operator'],
  query: z.object({ dry_run: flag, after: instant.optional() }),
  body: 'document',
  status: 201,
  answer: applied,
  others: {
    200: 'a dry run',
    409: 'another job of the project has that name, or the uuid is of another project',
    415: 'not JSON or YAML',
  },
} as const;

const tokenRow = z.object({ task_id: id, task_name: z.string(), trigger_datetime: time, state });
const instantPath = z.object({ id, instant });
const tokenQuery = (standard: number) =>
  z.object({ state: stateList.optional(), before: instant.optional(), limit: limit(standard) });

export const runRow = z.object({
  task_id: id,
  task_run_id: id,
  name: z.string(),
  trigger_datetime: time,
  attempt: z.int(),
  queued_datetime: time,
  started_datetime: time.nullable(),
  finish_datetime: time.nullable(),
  state,
  priority,
  worker_id: id.nullable(),
});

/** Periods and offsets are in seconds. */
export const triggerRow = z.object({
  trigger_id: id,
  trigger_name: z.string(),
  start_datetime: time,
  end_datetime: time.nullable(),
  earliest_trigger_datetime: time.nullable(),
  latest_trigger_datetime: time.nullable(),
  period: z.number().nullable(),
  cron: z.string().nullable(),
  timezone: z.string().nullable(),
  trigger_offset: z.number().nullable(),
  catchup: z.string(),
});

const runParams = z
  .record(z.string(), z.unknown())
  .check((context) => {
    const message = paramsFault(context.value);
    if (message !== undefined) context.issues.push({ code: 'custom', input: context.value, message });
  })
  .describe(`At most ${maxParamsBytes} bytes of JSON`);
const version = z.object({ version: z.int(), at: time, actor: z.string() });

const view = { tag: 'jobs', allow: ['viewer', 'operator'], params: idPath } as const;

export const jobEndpoints = endpoints({
  'GET /api/jobs': {
    summary: 'The job of that `project` and `name`; with neither, all jobs a page at a time',
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    query: z.object({
      project: z.string().optional(),
      name: z.string().optional(),
      limit: limit(100),
      cursor: z.string().optional(),
    }),
    answer: z.union([
      job,
      z.object({
        items: z.array(z.object({ ...job.shape, project: z.string(), version: z.int(), updated_at: time })),
        next: z.string().nullable(),
      }),
    ]),
  },
  'POST /api/jobs': apply,
  'PUT /api/jobs': apply,
  'POST /api/jobs/check': {
    summary: 'Check a document: a dry run that returns faults as a result instead of an error',
    tag: 'jobs',
    allow: ['operator'],
    body: 'document',
    answer: z.object({
      faults: z.array(fault),
      /** Null if there are faults. */
      applied: applied.nullable(),
    }),
    others: { 415: 'not JSON or YAML' },
  },
  'GET /api/jobs/schema': {
    summary: "The JSON Schema of a job document, made from the validator's own rules",
    tag: 'jobs',
    allow: ['anyone'],
    answer: z.record(z.string(), z.unknown()),
  },
  'GET /api/jobs/{id}': {
    ...view,
    summary: 'A job with its document and counts; with `document=false` the document is left empty',
    query: z.object({ document: z.enum(['true', 'false']).default('true') }),
    answer: z.object({
      ...job.shape,
      project: z.string(),
      version: z.int(),
      raw_definition: z.string(),
      active_tasks: z.int(),
      waiting_tasks: z.int(),
      succeeded_tasks_last_hour: z.int(),
      failed_tasks_last_hour: z.int(),
      error_tasks_last_hour: z.int(),
      /** null if the job is paused, or no trigger will fire again. */
      next_firing: nextFiring.nullable(),
    }),
  },
  'DELETE /api/jobs/{id}': {
    summary: 'Delete a job: its triggers stop, its runs are cancelled, running ones killed; its history stays readable',
    tag: 'jobs',
    allow: ['operator'],
    params: idPath,
    status: 204,
    answer: 'none',
  },
  'GET /api/jobs/{id}/versions': {
    ...view,
    summary: 'The versions of the document, newest first, each with its time and author',
    query: z.object({ limit: limit(50), before: z.coerce.number().int().min(1).optional() }),
    answer: z.object({ items: z.array(version), next: z.string().nullable() }),
  },
  'GET /api/jobs/{id}/versions/{version}': {
    ...view,
    summary: 'One version of the document',
    params: z.object({
      id,
      version: z.coerce
        .number()
        .int()
        .min(1)
        .max(2 ** 31 - 1),
    }),
    answer: z.object({ ...version.shape, definition: z.unknown() }),
  },
  'POST /api/jobs/{id}/run': {
    summary: 'Run the job now: every task that waits for no other task of the job gets a run at `instant`',
    tag: 'jobs',
    allow: ['operator'],
    params: idPath,
    body: z
      .strictObject({
        params: runParams.default({}),
        instant: instant.optional(),
        priority: priority.default('high'),
      })
      .default({ params: {}, priority: 'high' }),
    bodyBytes: 1024 * 1024,
    status: 201,
    answer: z.object({ instant: time, runs: z.array(id) }),
    others: { 409: 'the job is paused, or that instant already has other parameters' },
  },
  'GET /api/jobs/{id}/tasks': {
    ...view,
    summary: "A job's tasks, each with its state at its latest instant",
    answer: z.array(
      z.object({
        task_id: id,
        name: z.string(),
        latest_trigger_datetime: time.nullable(),
        latest_state: state.nullable(),
      }),
    ),
  },
  'GET /api/jobs/{id}/paused': { ...view, summary: 'Whether the job is paused', answer: z.boolean() },
  'PUT /api/jobs/{id}/paused': {
    summary: 'Pause or unpause: running runs finish, queued runs wait',
    tag: 'jobs',
    allow: ['operator'],
    params: idPath,
    body: z.strictObject({ paused: z.boolean() }),
    status: 204,
    answer: 'none',
  },
  'GET /api/jobs/{id}/graph': {
    ...view,
    summary: 'Tasks, triggers and edges, foreign ones included; with an instant also the states',
    query: z.object({ trigger_datetime: instant.optional() }),
    answer: z.object({
      nodes: z.array(
        z.object({
          id,
          kind: z.enum(['task', 'trigger']),
          name: z.string(),
          job_id: id,
          state: state.nullable(),
        }),
      ),
      edges: z.array(z.object({ from: id, to: id, kind: z.enum(['success', 'failure', 'done', 'trigger']) })),
      /** The other jobs that nodes belong to. */
      jobs: z.array(z.object({ id, name: z.string(), project: z.string() })),
      /** False: more than 2,000 tasks of other jobs depend on this one, and the rest is left out. */
      complete: z.boolean(),
    }),
  },
  'GET /api/jobs/{id}/duration': {
    ...view,
    summary: 'How long each task took at the latest instants, in seconds; fewer instants if there are many tasks',
    query: z.object({ before: instant.optional(), limit: limit(31) }),
    answer: z.object({
      duration: z.array(z.object({ trigger_datetime: time, duration: z.number(), task_name: z.string() })),
    }),
  },
  'GET /api/jobs/{id}/tokens': {
    ...view,
    summary: 'Tokens of the latest instants; fewer instants if there are many tasks',
    query: tokenQuery(200),
    answer: z.array(tokenRow),
  },
  'GET /api/jobs/{id}/tokens-overview': {
    ...view,
    summary: 'Instants by tasks, newest first; fewer instants if there are many tasks',
    query: tokenQuery(200),
    answer: z.object({
      tokens: z.array(
        z.object({
          trigger_datetime: time,
          task_states: z.record(z.string(), z.object({ task_name: z.string(), task_id: id, state })),
        }),
      ),
      tasks: z.array(z.string()),
    }),
  },
  'GET /api/jobs/{id}/tokens/{instant}': {
    ...view,
    summary: 'Tokens of one instant, with count and threshold',
    params: instantPath,
    answer: z.array(z.object({ ...tokenRow.shape, count: z.int(), threshold: z.int() })),
  },
  'DELETE /api/jobs/{id}/tokens/{instant}': {
    summary: 'Clear an instant: token counts start again from zero, waiting retries are dropped',
    tag: 'jobs',
    allow: ['operator'],
    params: instantPath,
    answer: z.object({ tokens_cleared: z.int() }),
  },
  'GET /api/jobs/{id}/runs/{instant}': {
    ...view,
    summary: 'All runs of one instant',
    params: instantPath,
    query: z.object({ limit: limit(200) }),
    answer: z.array(runRow),
  },
  'GET /api/jobs/{id}/triggers': {
    ...view,
    summary: "A job's triggers",
    answer: z.array(triggerRow),
  },
});
