/** Reading executions: a list that is searched, and one execution as at any of its revisions. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id, idPath, time } from '../../shapes.ts';
import { executionFilter, executionHead, pageOf, pageQuery, revision, tree } from '../shapes.ts';

const error = z.object({
  code: z.string(),
  message: z.string(),
  data: z.unknown(),
  node: z.string().describe('the node that failed first'),
});

/** What a node waits for. */
export const waitKinds = [
  /** Its time. */
  'timer',
  /** Signals, and perhaps its time. */
  'signal',
  /** A function that a conductor hosts. */
  'task',
  /** A run of a worker. */
  'run',
  'human',
  /** An execution that it has called. */
  'child',
  /** The pause before the next attempt. */
  'retry',
  'incident',
  /** Steps inside it. */
  'steps',
  /** Its work is being ended. */
  'closing',
] as const;

const waits = z.object({
  kind: z.enum(waitKinds),
  /** A clause, such as `the signal released, until 2026-01-31T00:00:00Z`. */
  message: z.string(),
  /** Names of signals, of the task, or of the flow that it has called. */
  names: z.array(z.string()),
  until: time.nullable(),
  /** The execution that it has called. */
  child: id.nullable(),
});

const node = z.object({
  id: z.string(),
  at: z.string().describe('the position of its step in the tree'),
  path: z.string().describe('the place of its step in the document'),
  verb: z.string(),
  name: z.string().nullable().describe('of a task or a called flow'),
  tag: z.string().nullable(),
  phase: z.enum(['run', 'backoff', 'close', 'undo', 'handle', 'incident']),
  role: z.enum(['main', 'background', 'handler', 'undo']),
  attempt: z.int(),
  parent: z.string().nullable(),
  since: time,
  waits: waits.nullable().describe('null: it is about to go on'),
  error: error.nullable(),
  item: z
    .object({ index: z.int(), key: z.union([z.string(), z.int()]) })
    .nullable()
    .describe('of the body of an `each`'),
  vars: z.record(z.string(), z.unknown()).describe('variables of its scope'),
  input: z.unknown().describe('what the function that it has called was given; null also if that is too long'),
  run: id.nullable().describe('the run of a worker that performs it'),
  call: id.nullable().describe('the execution that it has called'),
  workitem: id.nullable(),
  timers: z.array(z.object({ name: z.string(), due_at: time, planned_at: time.nullable() })),
});

const executionDetail = executionHead.extend({
  input: z.unknown(),
  fields: z.record(z.string(), z.unknown()).describe('sealed fields are shown as •••'),
  cut: z.array(z.string()).describe('what is not shown because it is too long: `input`, `result`, or `f.` and a field'),
  result: z.unknown().describe('of the last step so far'),
  error: error.nullable().describe('why it failed'),
  incidents: z.array(
    z.object({ node: z.string(), path: z.string(), code: z.string(), message: z.string(), since: time }),
  ),
  nodes: z.array(node).describe('live steps, at most 2,000'),
  nodes_total: z.int(),
  tree,
  /** The document that it follows, if a part of its tree was swapped. */
  own_document: z.boolean(),
  early: z
    .object({ total: z.int(), names: z.array(z.string()) })
    .describe('signals that nothing has waited for yet, with the names of the first 100'),
  is_busy: z.boolean().describe('steps are left to be interpreted, or functions are being called'),
  owner: z
    .object({ id, alive: z.boolean().nullable() })
    .nullable()
    .describe('the conductor in charge; `alive` is null if it is not known'),
});

export const executionViewEndpoints = endpoints({
  'GET /api/executions': {
    summary: 'Executions, newest first: by flow, status, label, key, time or the execution that called them',
    tag: 'executions',
    allow: ['viewer', 'operator'],
    query: z.object({ ...executionFilter, parent: id.optional(), ...pageQuery }),
    answer: pageOf(executionHead),
  },
  'GET /api/executions/{id}': {
    summary: 'An execution: its tree, its live steps and what each waits for, now or as at revision `rev`',
    tag: 'executions',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ rev: revision.optional() }),
    answer: executionDetail,
    others: { 404: 'there is no such execution, or its commits below that revision were deleted' },
  },
  'GET /api/executions/{id}/document': {
    summary: 'The document that an execution follows, which differs from that of its version after a swap',
    tag: 'executions',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ rev: revision.optional() }),
    answer: z.record(z.string(), z.unknown()),
  },
});
