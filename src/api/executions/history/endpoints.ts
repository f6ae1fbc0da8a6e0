/** The history of an execution: its commits, each with what it changed. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id, idPath, time } from '../../shapes.ts';
import { pageOf, revision } from '../shapes.ts';

const nodeChange = z.object({
  id: z.string(),
  path: z.string(),
  verb: z.string().nullable(),
  /** Phases; null: it did not exist before, or has ended. */
  from: z.string().nullable(),
  to: z.string().nullable(),
  attempt: z.int().nullable(),
});

const sent = z.object({
  kind: z.enum(['task', 'stop', 'timer', 'launch', 'signal']),
  node: z.string().nullable(),
  /** Of the task, the called flow, the signal or the timer. */
  name: z.string().nullable(),
  attempt: z.int().nullable(),
  /** When a timer is due. */
  due_at: time.nullable(),
  /** The execution that was launched or signalled. */
  execution: id.nullable(),
});

const historyEntry = z.object({
  rev: z.int(),
  at: time,
  actor: z.string().nullable().describe('null: a machine'),
  member: id.nullable().describe('the conductor that committed'),
  point: z.enum(['launch', 'answer', 'timer', 'signal', 'operate', 'continue']),
  message_id: z.string(),
  node: z.string().nullable().describe('the node that the message was for'),
  planned_at: time.nullable().describe('of a timer: when it was due'),
  /** What the message said: the name of a signal, the action of an operation, the outcome of an answer. */
  summary: z.string(),
  changes: z.object({
    fields: z.record(z.string(), z.unknown()).describe('fields that were set; long ones are shortened'),
    nodes: z.array(nodeChange).describe('at most 200'),
    nodes_total: z.int(),
    result: z.unknown().optional(),
    status: z.enum(['paused', 'resumed', 'done', 'failed', 'cancelled']).nullable(),
  }),
  sent: z.array(sent).describe('at most 200'),
});

export const executionHistoryEndpoints = endpoints({
  'GET /api/executions/{id}/history': {
    summary: 'Its commits in order, each with the message, the actor, and what changed',
    tag: 'executions',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({
      after: revision.default(0).describe('`next` of the previous page: entries after this revision'),
      limit: z.coerce.number().int().min(1).max(1000).default(100),
    }),
    answer: pageOf(historyEntry),
  },
});
