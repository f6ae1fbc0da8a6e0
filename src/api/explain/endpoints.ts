/** Explains why something ran or has not run: in words for people, and in codes and data for programs. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { id, idPath, instant, states, time } from '../shapes.ts';

/** All codes of reasons. docs/api.md documents each; a test compares the two lists. */
export const reasonCodes = [
  // what caused a run
  'fired',
  'caught_up',
  'backfilled',
  'run_now',
  'activated',
  'retried',
  'threshold_reached',
  'cause_forgotten',
  // why a run has not started, or which worker has it
  'queued',
  'places_taken',
  'no_worker',
  'runtime_unserved',
  'runtime_unavailable',
  'runtime_not_allowed',
  'queue_unserved',
  'paused',
  'job_limit',
  'task_limit',
  'pool_full',
  'lease_lost',
  'running',
  'worker_silent',
  'cancel_wished',
  'no_scheduler',
  // how a run ended, and what followed
  'succeeded',
  'failed',
  'timed_out',
  'errored',
  'cancelled',
  'retry_scheduled',
  'tried_again',
  'counted_children',
  'counted_nothing',
  // why a token waits
  'counting',
  'held',
  'cleared',
  'never_begun',
  'no_parents',
  'threshold_out_of_reach',
  'task_removed',
  'parent_waiting',
  'parent_not_begun',
  'parent_queued',
  'parent_running',
  'parent_retrying',
  'parent_paused',
  'parent_failed',
  'parent_succeeded',
  'parent_cancelled',
  'parent_counted_before',
  // what a trigger does
  'trigger_fired',
  'trigger_not_due',
  'trigger_overdue',
  'trigger_off_schedule',
  'trigger_skipped',
  'trigger_catching_up',
  'trigger_paused',
  'trigger_ended',
  'trigger_removed',
  'trigger_counted_before',
  'trigger_unused',
  // why an execution of a flow exists, and where it is
  'launched',
  'called',
  'forked',
  'not_begun',
  'messages_waiting',
  'no_conductor',
  'tenant_off',
  'executing',
  'execution_paused',
  'incident',
  'waits_for_time',
  'waits_for_signal',
  'waits_for_function',
  'function_unhosted',
  'waits_for_run',
  'waits_for_person',
  'waits_for_child',
  'waits_for_retry',
  'closing',
  'signals_early',
  'execution_done',
  'execution_failed',
  'execution_cancelled',
  // of a run: the step of an execution that it performs
  'performs_step',
] as const;
export type ReasonCode = (typeof reasonCodes)[number];

const reason = z.object({
  code: z.enum(reasonCodes),
  message: z.string(),
  /** Ids, times and numbers behind the message. The fields depend on the code. */
  data: z.record(z.string(), z.unknown()),
});

/** One step back. The last step is a trigger or a person, unless the history has been deleted. */
const link = z.object({
  what: z.enum(['run', 'token', 'trigger', 'backfill', 'person', 'more', 'execution']),
  /** A UUID; for a token `TASK@INSTANT`; for a person the actor as in events. */
  id: z.string().nullable(),
  at: time.nullable(),
  message: z.string(),
});

/** The states of a trigger, or of one of its instants. */
const triggerStates = [
  'scheduled',
  'due',
  'fired',
  'off_schedule',
  'skipped',
  'catching_up',
  'paused',
  'ended',
  'removed',
] as const;

/** Statuses of an execution that are no states of runs or triggers. */
const executionStates = ['incident', 'done', 'failed'] as const;

const explanation = z.object({
  subject: z.object({
    kind: z.enum(['token', 'run', 'trigger', 'execution']),
    id: z.string(),
    /** `project/job/task/name` or `project/job/trigger/name`; of an execution, its flow; null if it belongs to no task. */
    name: z.string().nullable(),
    instant: time.nullable(),
    job: id.nullable(),
  }),
  state: z.enum([...states, ...triggerStates, ...executionStates]),
  summary: z.string(),
  reasons: z.array(reason),
  chain: z.array(link),
  /** What will happen next, or what the user can do. */
  next: z.string().nullable(),
});

/** `TASK@INSTANT`. Without an instant: the newest instant of the task, else of its job. */
const tokenId = z.string().transform((text, context) => {
  const [task = '', at, ...more] = text.split('@');
  const taskId = id.safeParse(task);
  const parsed = at === undefined ? undefined : instant.safeParse(at);
  if (taskId.success && parsed?.success !== false && more.length === 0) {
    return { task: taskId.data.toLowerCase(), instant: parsed?.data };
  }
  context.addIssue({
    code: 'custom',
    message: 'write TASK@INSTANT: a UUID, @, and a time such as 2026-01-31T00:00:00Z',
  });
  return z.NEVER;
});

const view = { tag: 'explain', allow: ['viewer', 'operator'], answer: explanation } as const;

export const explainEndpoints = endpoints({
  'GET /api/explain/token/{id}': {
    ...view,
    summary:
      'Why a task ran at an instant, or why it has not. The id is `TASK@INSTANT`, or `TASK` for its newest instant',
    params: z.object({ id: tokenId }),
  },
  'GET /api/explain/run/{id}': {
    ...view,
    summary: 'Why a run exists, why it has not started or how it ended, and what followed',
    params: idPath,
  },
  'GET /api/explain/trigger/{id}': {
    ...view,
    summary:
      'When a trigger fires next and what prevents it; with `instant`, whether and why it fired for that instant',
    params: idPath,
    query: z.object({ instant: instant.optional() }),
  },
  'GET /api/explain/execution/{id}': {
    ...view,
    summary: 'Why an execution of a flow is where it is: what it waits for, since when, and what would move it',
    params: idPath,
  },
});
