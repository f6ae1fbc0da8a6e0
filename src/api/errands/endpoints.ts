/** Errands: the background work of the bus, such as deliveries. List them, and retry those that wait or were set aside. */
import { z } from 'zod';
import { errandQueues, errandStates } from '../../errands/contract.ts';
import { endpoints } from '../../http/endpoint.ts';
import { id, time } from '../shapes.ts';

const errand = z.object({
  queue: z.enum(errandQueues),
  key: z.string().describe('names the work and its arguments, as JSON'),
  /** Null: work that this version does not know. */
  work: z.enum(['deliver', 'replay', 'test', 'relay']).nullable(),
  /** The name of the subscriber that it works for. */
  subscriber: z.string().nullable(),
  state: z.enum(errandStates),
  /** When a scheduled errand becomes ready. */
  run_at: time.nullable(),
  /** The courier that holds a pending errand. */
  worker: id.nullable(),
  taken_at: time.nullable(),
  /** Couriers lost with it since its last progress. */
  losses: z.int(),
  attempts: z.int(),
  reason: z.string().nullable(),
});

const counts = z.object({ scheduled: z.int(), ready: z.int(), pending: z.int(), poisoned: z.int() });

export const errandEndpoints = endpoints({
  'GET /api/errands': {
    summary: 'Errands by queue and key, a page at a time, with the number of all in each queue and state',
    tag: 'bus',
    allow: ['viewer', 'operator'],
    query: z.object({
      queue: z.enum(errandQueues).optional().describe('`main`: deliveries and replays; `aux`: tests and the relay'),
      state: z.enum(errandStates).optional().describe('`poisoned`: set aside after five lost couriers'),
      limit: z.coerce.number().int().min(1).max(1000).default(100).describe('items of a page'),
      cursor: z.string().max(2_000).optional().describe('`next` of the previous page'),
    }),
    answer: z.object({
      items: z.array(errand),
      next: z.string().nullable(),
      counts: z.object({ main: counts, aux: counts }),
    }),
  },
  'POST /api/errands/retry': {
    summary: 'Make scheduled errands ready now, and give poisoned ones another chance; others are left alone',
    tag: 'bus',
    allow: ['operator'],
    body: z.strictObject({
      queue: z.enum(errandQueues),
      keys: z.array(z.string().min(1).max(1_000)).min(1).max(1_000).describe('as the list has them'),
    }),
    answer: z.object({
      /** Scheduled before. */
      promoted: z.int(),
      /** Poisoned before. */
      revived: z.int(),
    }),
  },
});
