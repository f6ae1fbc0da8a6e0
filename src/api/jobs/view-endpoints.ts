/** Jobs for the web interface: the overview, the grid of instants and tasks, the next firings. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { instantStates } from '../instants/endpoints.ts';
import { triggerRow } from './endpoints.ts';
import { id, idPath, instant, limit, time } from '../shapes.ts';
import { coming, nextFiring } from '../triggers/endpoints.ts';

/** The letter of each state of a token in a row of the grid. */
export const cellLetters = {
  none: '-',
  waiting: 'w',
  ready: 'q',
  running: 'r',
  retry: 'y',
  success: 's',
  failure: 'f',
  timeout: 't',
  error: 'e',
  cancelled: 'c',
} as const;

/** Maximum queued runs that are counted for each job of the overview, because each one is a row to be read. */
export const queuedUpTo = 100;

const recentInstant = z.object({
  instant: time,
  state: z.enum(instantStates),
  /** From the first start to the last end; null if it has not ended, or nothing ran. */
  seconds: z.number().nullable(),
});

const jobAtAGlance = z.object({
  id,
  project: z.object({ id, name: z.string() }),
  name: z.string(),
  description: z.string(),
  paused: z.boolean(),
  version: z.int(),
  tasks: z.int(),
  running: z.int(),
  /** At most `queuedUpTo`. */
  queued: z.int(),
  next: nextFiring.nullable(),
  /** The latest instants, oldest first. Fewer for a job with many tasks. */
  recent: z.array(recentInstant),
});

export const jobViewEndpoints = endpoints({
  'GET /api/jobs/overview': {
    summary:
      'Overview of jobs by project and name, a page at a time: running and queued runs (counted up to ' +
      `${queuedUpTo}), the latest instants, the next firing`,
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    query: z.object({
      q: z.string().max(200).optional().describe('words in the project, name or description'),
      project: id.optional(),
      show: z
        .enum(['all', 'running', 'failing', 'paused'])
        .default('all')
        .describe('`running`: a worker has a run of it; `failing`: the last run of a task failed recently'),
      limit: z.coerce.number().int().min(1).max(200).default(50),
      cursor: z.string().max(2_000).optional(),
    }),
    answer: z.object({
      items: z.array(jobAtAGlance),
      next: z.string().nullable(),
      /** The number of matching jobs on all pages. */
      total: z.int(),
    }),
  },
  'GET /api/jobs/{id}/grid': {
    summary:
      'Instants by tasks, newest first; a cell is one letter. A page has fewer instants if there are many tasks. ' +
      '`before` leads to older instants, `after` to newer ones',
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ limit: limit(100), before: instant.optional(), after: instant.optional() }),
    answer: z.object({
      /** In the order of the graph, parents first. */
      tasks: z.array(z.object({ id, name: z.string() })),
      items: z.array(z.object({ instant: time, state: z.enum(instantStates), cells: z.string() })),
      /** The `before` of the older page, and the `after` of the newer page; null if there is none. */
      older: time.nullable(),
      newer: time.nullable(),
    }),
  },
  'GET /api/jobs/{id}/firings': {
    summary:
      "A job's triggers, each with its next firings and the number of instants to be caught up; for a paused job, as if it were unpaused now",
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ count: z.coerce.number().int().min(1).max(100).default(5) }),
    answer: z.object({
      paused: z.boolean(),
      /** `next`: fewer than `count` if there are very many triggers. `catching_up`: the number of instants left. */
      items: z.array(z.object({ ...triggerRow.shape, next: z.array(coming), catching_up: z.int() })),
    }),
  },
});
