/** Backfills fire instants of a job again. They are created under the job, then read and cancelled by their own id. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { id, idPath, instant, jobName, limit, priority, time } from '../shapes.ts';

/** A name that the caller chooses for the backfill. */
const label = z.string().trim().min(1).max(200);

const order = z.enum(['earliest', 'latest', 'random']);
const only = z.enum(['all', 'missing']);

const outline = z.object({
  id,
  job: jobName,
  name: z.string().nullable(),
  triggers: z.array(z.string()),
  first: time,
  last: time,
  order,
  priority,
  only,
  state: z.enum(['running', 'done', 'cancelled']),
  /** `total`: instants in the range, over all triggers. `fired` and `skipped` (because they had fired before) are parts of it. */
  instants: z.object({ total: z.int(), fired: z.int(), skipped: z.int() }),
  created_at: time,
  ended_at: time.nullable(),
  by: z.string(),
});

/** Each task at each instant counts once, by its current state. `waiting`: held back by a limit or a pause. */
const runs = z.object({
  waiting: z.int(),
  ready: z.int(),
  running: z.int(),
  retry: z.int(),
  success: z.int(),
  failure: z.int(),
  timeout: z.int(),
  error: z.int(),
  cancelled: z.int(),
});

const backfill = z.object({
  ...outline.shape,
  runs,
  /** False: the backfill is running and has more finished runs than are counted. At its end, all are counted. */
  runs_complete: z.boolean(),
});

const preview = z.object({
  dry_run: z.literal(true),
  /** The number of instants that would fire, over all triggers. */
  instants: z.object({ total: z.int() }),
  items: z.array(z.object({ instant: time, triggers: z.array(z.string()) })),
  /** The `first` that lists the next page. */
  next: time.nullable(),
});

const page = z.object({ limit: limit(50), cursor: id.optional() });
const pageOf = z.object({ items: z.array(outline), next: id.nullable() });

export const backfillEndpoints = endpoints({
  'POST /api/jobs/{id}/backfill': {
    summary:
      'Fire the instants from `first` to `last` (both inclusive) again; `dry_run` only lists them. If the job ' +
      'already has a backfill of that `name`, returns it',
    tag: 'backfills',
    allow: ['operator'],
    params: idPath,
    body: z
      .strictObject({
        first: instant,
        last: instant,
        triggers: z.array(z.string()).min(1).max(1000).optional(),
        order: order.default('earliest'),
        priority: priority.default('backfill'),
        only: only.default('all'),
        name: label.optional(),
        dry_run: z.boolean().default(false),
        limit: limit(100).describe('maximum instants that a dry run lists'),
      })
      .refine((body) => body.first <= body.last, { path: ['last'], error: 'lies before first' }),
    bodyBytes: 1024 * 1024,
    status: 201,
    answer: z.union([backfill, preview]),
    others: {
      200: 'a dry run, or the existing backfill of that name',
      409: 'the name is taken by a backfill of another range, or the overlap rule of the job would drop instants',
    },
  },
  'GET /api/jobs/{id}/backfills': {
    summary: "A job's backfills, newest first",
    tag: 'backfills',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: page,
    answer: pageOf,
  },
  'GET /api/backfills': {
    summary: 'Backfills of all jobs, newest first',
    tag: 'backfills',
    allow: ['viewer', 'operator'],
    query: page,
    answer: pageOf,
  },
  'GET /api/backfills/{id}': {
    summary: 'A backfill with its progress and the states of its runs',
    tag: 'backfills',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: backfill,
  },
  'POST /api/backfills/{id}/cancel': {
    summary: 'Cancel a backfill: it stops firing and its queued runs are cancelled; running runs finish',
    tag: 'backfills',
    allow: ['operator'],
    params: idPath,
    answer: backfill,
  },
});
