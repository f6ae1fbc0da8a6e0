/** Jobs as the web interface shows them: the list at a glance, the grid of instants and tasks, the next firings. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { instantStates } from '../instants/endpoints.ts';
import { triggerRow } from './endpoints.ts';
import { id, idPath, instant, limit, time } from '../shapes.ts';
import { coming, nextFiring } from '../triggers/endpoints.ts';

/** A token's state as one letter of a grid's row. */
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

/** Of each job in the list no more than this many queued runs are counted: each is a row to be read, of every job shown. */
export const queuedUpTo = 100;

const recentInstant = z.object({
  instant: time,
  state: z.enum(instantStates),
  /** From the first start to the last end; null while it is under way, or where nothing ran. */
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
  /** The latest instants, oldest first: fewer of a job with many tasks. */
  recent: z.array(recentInstant),
});

export const jobViewEndpoints = endpoints({
  'GET /api/jobs/overview': {
    summary:
      'Jobs at a glance by project and name, a page at a time: what runs, what is queued (counted up to ' +
      `${queuedUpTo}), the latest instants, the next firing`,
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    query: z.object({
      q: z.string().max(200).optional().describe('words that project, name or description hold'),
      project: id.optional(),
      show: z
        .enum(['all', 'running', 'failing', 'paused'])
        .default('all')
        .describe('`running`: a worker is at it; `failing`: the last run of a task went wrong, a short while ago'),
      limit: z.coerce.number().int().min(1).max(200).default(50),
      cursor: z.string().max(2_000).optional(),
    }),
    answer: z.object({
      items: z.array(jobAtAGlance),
      next: z.string().nullable(),
      /** How many there are in all, whatever the page. */
      total: z.int(),
    }),
  },
  'GET /api/jobs/{id}/grid': {
    summary:
      'Instants by tasks, newest first; a cell is one letter. Pages hold fewer instants where there are many tasks. ' +
      '`before` goes on to older instants, `after` back to newer ones',
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ limit: limit(100), before: instant.optional(), after: instant.optional() }),
    answer: z.object({
      /** In the order of the graph: what comes first stands first. */
      tasks: z.array(z.object({ id, name: z.string() })),
      items: z.array(z.object({ instant: time, state: z.enum(instantStates), cells: z.string() })),
      /** The `before` of the page of older instants, and the `after` of that of newer ones; null where there are none. */
      older: time.nullable(),
      newer: time.nullable(),
    }),
  },
  'GET /api/jobs/{id}/firings': {
    summary:
      "A job's triggers, each with its next firings and what is still to be caught up; of a paused job, as if it were unpaused now",
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ count: z.coerce.number().int().min(1).max(100).default(5) }),
    answer: z.object({
      paused: z.boolean(),
      /** `next`: fewer than `count` where there are very many triggers. `catching_up`: how many instants are left. */
      items: z.array(z.object({ ...triggerRow.shape, next: z.array(coming), catching_up: z.int() })),
    }),
  },
});
