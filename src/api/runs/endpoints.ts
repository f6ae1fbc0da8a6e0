/** Runs: list, read, follow the log, cancel; and the streams of events and changes. */
import { z } from 'zod';
import { maxResultBytes } from '../../contract/wire.ts';
import { endpoints } from '../../http/endpoint.ts';
import { flag, id, idPath, instant, jobName, limit, priority, state, stateList, time } from '../shapes.ts';

/** A run in Millrace's own endpoints. */
const run = z.object({
  id,
  state,
  job: jobName.nullable(),
  task: z.object({ id, name: z.string() }).nullable(),
  instant: time.nullable(),
  version: z.int(),
  attempt: z.int(),
  priority,
  lease: z.int(),
  worker_id: id.nullable(),
  cause: id.nullable(),
  queued_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
  reason: z.string().nullable(),
  exit_code: z.int().nullable(),
});

/** One run, with what lists leave out. */
const runWithResult = z.object({
  ...run.shape,
  /** What it is about, if that is a node of an execution and not a task at an instant. */
  node: z.object({ execution: id, id: z.string(), name: z.string() }).nullable(),
  /** The JSON value that the task made; null: none, or none yet. */
  result: z.unknown(),
});

/** One step in the history of a run. */
const moment = z.object({
  at: time,
  what: z.enum(['queued', 'started', 'handed_out_again', 'cancel_wished', 'retry_scheduled', 'ended']),
  message: z.string(),
  /** Who caused it, if known. */
  actor: z.string().nullable(),
});

/** The environment of a run: from its version of the document, with expanded placeholders and without secrets. */
const environment = z.object({
  runtime: z.string(),
  queue: z.string(),
  /** The program with its arguments; for a function its name; null for a task without a runtime. */
  command: z.array(z.string()).nullable(),
  image: z.string().nullable(),
  cwd: z.string().nullable(),
  /** Limits, user, volumes and so on of a container, as its document has them. */
  container: z.record(z.string(), z.string()).nullable(),
  timeout_seconds: z.number().nullable(),
  /**
   * `value` is null if it is a secret, or if only the worker knows it. `stash` names the stash entry of a secret, if it comes
   * from one.
   */
  variables: z.array(
    z.object({
      name: z.string(),
      value: z.string().nullable(),
      stash: z.string().nullable(),
      from: z.enum(['document', 'millrace', 'worker']),
    }),
  ),
  params: z.record(z.string(), z.unknown()),
  input: z.unknown(),
});

export const runEndpoints = endpoints({
  'GET /api/runs': {
    summary:
      'Runs, newest first, a page at a time; with `job` or `task`, first queued and running runs, then the runs that ended last',
    tag: 'runs',
    allow: ['viewer', 'operator'],
    query: z.object({
      job: id.optional(),
      task: id.optional(),
      instant: instant.optional(),
      state: stateList.optional(),
      limit: limit(50),
      cursor: z.string().max(200).optional().describe('`next` of the previous page'),
    }),
    answer: z.object({ items: z.array(run), next: z.string().nullable() }),
  },
  'GET /api/runs/{id}': {
    summary: 'One run, with its result',
    tag: 'runs',
    allow: ['viewer', 'operator', 'task'],
    params: idPath,
    answer: runWithResult,
  },
  'PUT /api/runs/{id}/result': {
    summary:
      'Store the result of a running task, any JSON value; the last one counts, unless the run ends with another',
    tag: 'tasks and workers',
    allow: ['task'],
    params: idPath,
    body: 'bytes',
    bodyBytes: maxResultBytes,
    documented: { body: z.unknown() },
    status: 204,
    answer: 'none',
    others: { 413: 'it has more than 256 KiB' },
  },
  'GET /api/runs/{id}/history': {
    summary: 'The history of a run, oldest step first',
    tag: 'runs',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: z.object({ items: z.array(moment) }),
  },
  'GET /api/runs/{id}/attempts': {
    summary: 'All runs of the same task at the same instant, newest first, this one included; at most a hundred',
    tag: 'runs',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: z.object({ items: z.array(run) }),
  },
  'GET /api/runs/{id}/environment': {
    summary:
      'The environment of a run: command, variables, params; values of secrets are never shown. A task may read that of its own run',
    tag: 'runs',
    allow: ['viewer', 'operator', 'task'],
    params: idPath,
    answer: environment,
  },
  'GET /api/runs/{id}/logs': {
    summary:
      'The output of a run, both streams in order, after its first `from` bytes; with `follow`, until the run ends',
    tag: 'runs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({
      follow: flag,
      from: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
    }),
    answer: 'text',
  },
  'POST /api/runs/{id}/cancel': {
    summary: 'Cancel: a queued run ends at once, a running one is killed by its worker',
    tag: 'runs',
    allow: ['operator'],
    params: idPath,
    status: 202,
    answer: z.object({ id, outcome: z.enum(['cancelled', 'cancelling', 'finished']) }),
  },
  'GET /api/events': {
    summary: 'Server-sent events from the log; `Last-Event-ID` or `after` resumes where a reader stopped',
    tag: 'events',
    allow: ['viewer', 'operator'],
    query: z.object({
      topic: z.string().max(200).optional(),
      after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
    }),
    answer: 'events',
  },
  'GET /api/changes': {
    summary:
      'Server-sent digests of changes, a few per second at most: which jobs, runs and documents to read again. ' +
      '`Last-Event-ID` or `after` resumes where a reader stopped',
    tag: 'events',
    allow: ['viewer', 'operator'],
    query: z.object({ after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional() }),
    answer: 'events',
  },
});
