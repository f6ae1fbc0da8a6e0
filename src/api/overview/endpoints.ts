/** The start page of an operator: what runs, is late, fails and comes next; the activity per minute; and search. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { id, instant, jobName, limit, state, time } from '../shapes.ts';

/** Maximum of a count. Counting further would cost more than the rest of the page. */
export const countedUpTo = 10_000;

const late = z.object({
  /** `trigger`: an instant is due and has not fired. `run`: it is queued and no worker takes it. */
  kind: z.enum(['trigger', 'run']),
  id,
  /** The name of the trigger, or of the run's task. */
  name: z.string(),
  job: jobName,
  instant: time.nullable(),
  /** When it should have fired, or when it was queued. */
  since: time,
});

/** A task whose newest finished run failed. */
const failing = z.object({
  run: id,
  state,
  job: jobName,
  task: z.object({ id, name: z.string() }),
  instant: time.nullable(),
  reason: z.string().nullable(),
  finished_at: time,
});

/** An execution of a flow that waits for a repair. */
const incident = z.object({
  execution: id,
  flow: z.string(),
  key: z.string().nullable(),
  /** Of its last incident; null: the log does not have it any more. */
  node: z.string().nullable(),
  code: z.string().nullable(),
  since: time,
});

const coming = z.object({
  trigger: z.object({ id, name: z.string() }),
  job: jobName,
  instant: time,
  due: time,
});

const health = z.object({
  database: z.object({ latency_ms: z.number(), size_bytes: z.int() }),
  schedulers: z.object({ up: z.int(), gone: z.int(), queued_triggers: z.int() }),
  workers: z.object({ up: z.int(), gone: z.int(), places: z.int(), taken: z.int() }),
});

const minute = z.object({
  /** The beginning of the step. */
  at: time,
  success: z.int(),
  failure: z.int(),
  timeout: z.int(),
  error: z.int(),
  cancelled: z.int(),
  /** Instants that fired on schedule, and their delay in milliseconds; null if none fired. */
  fired: z.int(),
  late_mean: z.number().nullable(),
  late_worst: z.number().nullable(),
  /** The time from queued to started of the runs that ended, in milliseconds. */
  wait_mean: z.number().nullable(),
  wait_worst: z.number().nullable(),
});

const hit = z.object({
  kind: z.enum(['project', 'job', 'task', 'trigger', 'run', 'worker', 'backfill', 'flow', 'execution']),
  id,
  name: z.string(),
  /** The job and project that the hit belongs to. */
  job: jobName.nullable(),
  project: z.object({ id, name: z.string() }).nullable(),
});

const view = { tag: 'overview', allow: ['viewer', 'operator'] } as const;

export const overviewEndpoints = endpoints({
  'GET /api/overview': {
    ...view,
    summary: 'What runs, is late, fails and comes next, and whether schedulers, workers and the database are well',
    answer: z.object({
      at: time,
      /** Each count is at most `counted_up_to`. `held`: held back by a limit or a pause. */
      running: z.int(),
      ready: z.int(),
      held: z.int(),
      retry: z.int(),
      counted_up_to: z.int(),
      late: z.array(late),
      failing: z.array(failing),
      /** `total` counts executions, up to 100. The newest come first. */
      incidents: z.object({ total: z.int(), items: z.array(incident) }),
      next: z.array(coming),
      health,
    }),
  },
  'GET /api/activity': {
    ...view,
    summary: 'The number of runs by result, and how late triggers fired and runs started, in steps of whole minutes',
    query: z.object({
      minutes: z.coerce.number().int().min(1).max(43_200).default(60).describe('how far back, up to thirty days'),
      until: instant.optional().describe('the end; by default now'),
    }),
    answer: z.object({
      /** Length of a step in minutes, which grows with the span. Steps without activity are included. */
      step: z.int(),
      items: z.array(minute),
    }),
  },
  'GET /api/search': {
    ...view,
    summary:
      'Projects, jobs, tasks, triggers and flows whose names contain every word of `q`, the best first; or the object with the id `q`; or the execution with the key `q`',
    query: z.object({ q: z.string().trim().min(1).max(200), limit: limit(20) }),
    answer: z.object({ items: z.array(hit) }),
  },
});
