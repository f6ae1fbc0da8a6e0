/** Runs: list, look, follow the log, cancel; and the event stream that tells of all of them. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { flag, id, idPath, instant, limit, priority, state, stateList, time } from './shapes.ts';

/** A run as Millrace's own endpoints show it. */
const run = z.object({
  id,
  state,
  job: z.object({ id, name: z.string(), project: z.string() }).nullable(),
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

export const runEndpoints = endpoints({
  'GET /api/runs': {
    summary:
      'Runs, newest first, a page at a time; of a `job` or `task` first what is queued or running, then what ended last',
    tag: 'runs',
    allow: ['viewer', 'operator'],
    query: z.object({
      job: id.optional(),
      task: id.optional(),
      instant: instant.optional(),
      state: stateList.optional(),
      limit: limit(50),
      cursor: z.string().max(200).optional().describe('`next` of the page before'),
    }),
    answer: z.object({ items: z.array(run), next: z.string().nullable() }),
  },
  'GET /api/runs/{id}': {
    summary: 'One run',
    tag: 'runs',
    allow: ['viewer', 'operator', 'task'],
    params: idPath,
    answer: run,
  },
  'GET /api/runs/{id}/logs': {
    summary: "A run's output, both streams in order; with `follow` until the run ends",
    tag: 'runs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ follow: flag }),
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
    summary: 'Server-sent events from the log; `Last-Event-ID` or `after` goes on where a reader stopped',
    tag: 'events',
    allow: ['viewer', 'operator'],
    query: z.object({
      topic: z.string().max(200).optional(),
      after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
    }),
    answer: 'events',
  },
});
