/** The instants of a job with their states, and the activation of tokens by filter. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { id, idPath, instant, limit, priority, stateWords, time } from '../shapes.ts';

/** States of a token. `ready` is `active` in Waterwheel's endpoints. */
export const tokenStates = [
  'waiting',
  'ready',
  'running',
  'retry',
  'success',
  'failure',
  'timeout',
  'error',
  'cancelled',
] as const;
export type TokenState = (typeof tokenStates)[number];
const tokenState = z.enum(tokenStates);

/** States of a whole instant. `ready`: a run is queued, and none is running. */
export const instantStates = ['running', 'ready', 'retry', 'failure', 'cancelled', 'waiting', 'success'] as const;

const instantRow = z.object({
  instant: time,
  state: z.enum(instantStates),
  /** The number of tokens in each state. */
  tasks: z.record(tokenState, z.int()),
  started_at: time.nullable(),
  /** Null while a run is running or queued, or a retry is scheduled. */
  finished_at: time.nullable(),
  /** Whether it is one of the `max_active_instants`; null if the job has no such limit. */
  active: z.boolean().nullable(),
});

export const instantEndpoints = endpoints({
  'GET /api/jobs/{id}/instants': {
    summary: 'The instants of a job, newest first, each with its state and those of its tasks',
    tag: 'jobs',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ limit: limit(50), cursor: instant.optional() }),
    answer: z.object({ items: z.array(instantRow), next: time.nullable() }),
  },
  'POST /api/jobs/{id}/activate': {
    summary:
      'Activate the tokens that match a filter: by task, state, instants or a range of them (inclusive). Without ' +
      '`states`, queued and running tokens are left alone. `dry_run` only lists the tokens',
    tag: 'jobs',
    allow: ['operator'],
    params: idPath,
    body: z
      .strictObject({
        tasks: z.array(z.string()).min(1).max(1000).optional(),
        states: z.array(z.enum(stateWords)).min(1).max(stateWords.length).optional(),
        first: instant.optional(),
        last: instant.optional(),
        instants: z.array(instant).min(1).max(1000).optional(),
        priority: priority.default('backfill'),
        dry_run: z.boolean().default(false),
      })
      .refine(
        ({ tasks, states, first, last, instants }) =>
          [tasks, states, first, last, instants].some((part) => part !== undefined),
        { error: 'give at least one of tasks, states, first, last and instants' },
      ),
    bodyBytes: 1024 * 1024,
    answer: z.object({
      dry_run: z.boolean(),
      /** The number of tokens that were activated, or would be. */
      tokens: z.int(),
      /** In a dry run: the first thousand tokens. */
      items: z.array(z.object({ task_id: id, task: z.string(), instant: time, state: tokenState })).optional(),
    }),
  },
});
