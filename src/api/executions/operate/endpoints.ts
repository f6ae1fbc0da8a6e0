/** Operations on executions and their steps: signals, cancel, kill, pause, resume, retry, skip; on one or on many. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id, idPath } from '../../shapes.ts';
import { executionFilter, idempotencyKey, nodeId, outcome, outcomeStatuses } from '../shapes.ts';
import { maxLaunchBytes } from '../launch/endpoints.ts';

const signal = {
  name: z.string().min(1).max(200).describe('the name of the signal'),
  payload: z.unknown().default(null).describe('any JSON, at most a megabyte'),
} as const;

const operation = {
  tag: 'executions',
  allow: ['operator'],
  documented: { headers: idempotencyKey },
  answer: outcome,
  others: outcomeStatuses,
} as const;
const nodePath = z.object({ id, node: nodeId });

export const actions = ['cancel', 'kill', 'pause', 'resume', 'retry', 'skip'] as const;

export const operateEndpoints = endpoints({
  'POST /api/executions/{id}/signals': {
    ...operation,
    allow: ['operator', 'task'],
    summary: 'Send a signal. One that nothing waits for yet is kept for a day',
    params: idPath,
    body: z.strictObject(signal),
    bodyBytes: maxLaunchBytes,
  },
  'POST /api/executions/{id}/cancel': {
    ...operation,
    summary: 'Cancel an execution: compensations and on_cancel run',
    params: idPath,
  },
  'POST /api/executions/{id}/kill': {
    ...operation,
    summary: 'End an execution at once: no compensation runs, and no work is waited for',
    params: idPath,
  },
  'POST /api/executions/{id}/pause': {
    ...operation,
    summary: 'Pause an execution: messages gather and timers wait; running tasks go on, and their answers are kept',
    params: idPath,
  },
  'POST /api/executions/{id}/resume': {
    ...operation,
    summary: 'Resume a paused execution',
    params: idPath,
  },
  'POST /api/executions/{id}/nodes/{node}/retry': {
    ...operation,
    summary: 'Try a failed step again, now',
    params: nodePath,
  },
  'POST /api/executions/{id}/nodes/{node}/skip': {
    ...operation,
    summary: 'End a step with a result, as if it had given that itself',
    params: nodePath,
    body: z.strictObject({ result: z.unknown().default(null) }).default({ result: null }),
    bodyBytes: maxLaunchBytes,
  },
  'POST /api/executions/{id}/nodes/{node}/cancel': {
    ...operation,
    summary: 'Cancel a step and those inside it; the steps after it go on',
    params: nodePath,
  },
  'POST /api/executions/{id}/nodes/{node}/kill': {
    ...operation,
    summary: 'End a step at once, without compensations',
    params: nodePath,
  },
  'POST /api/executions/operate': {
    summary:
      'An operation on the executions of a filter, a page at a time: go on with `next`. `retry` and `skip` are for all their incidents',
    tag: 'executions',
    allow: ['operator'],
    body: z.strictObject({
      filter: z.strictObject(executionFilter),
      action: z.union([z.enum(actions), z.strictObject({ signal: z.strictObject(signal) })]),
      limit: z.int().min(1).max(1_000).default(100).describe('executions of this call'),
      cursor: z.string().max(200).optional().describe('`next` of the previous answer'),
      dry_run: z.boolean().default(false).describe('only count'),
    }),
    bodyBytes: maxLaunchBytes,
    documented: { headers: idempotencyKey },
    answer: z.object({
      matched: z.int(),
      done: z.int(),
      accepted: z.int().describe('stored, and taking effect when a conductor takes them'),
      refused: z.int(),
      failures: z.array(z.object({ id, code: z.string(), detail: z.string() })).describe('at most 100'),
      next: z.string().nullable().describe('the cursor of the next call; null: no execution is left'),
    }),
  },
});
