/** Deliveries as they were attempted, and dead letters: batches that were given up. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { flag, id, idPath } from '../../shapes.ts';
import { busElement, deadLetter, delivery, own, pageOf, pageQuery, subscriberKey, subscriberPath } from '../shapes.ts';

const deliveries = {
  summary: 'Attempts, newest first: every failure, and at most 100 successes a second',
  tag: 'bus',
  query: z.object({
    ...pageQuery,
    failed: flag.describe('only failures'),
    batch: z.string().max(100).optional().describe('only attempts of the batch with this `webhook-id`'),
  }),
  answer: pageOf(delivery),
} as const;

/** Clients see their own dead letters; operators and viewers see all, or those of one subscriber. */
const readers = ['viewer', 'operator', 'client', 'subscriber'] as const;
const writers = ['operator', 'client', 'subscriber'] as const;
const scope = {
  subscriber: subscriberKey.optional().describe('for operators: only of this subscriber; a client has only its own'),
} as const;

export const deliveryEndpoints = endpoints({
  'GET /bus/subscriber/deliveries': { ...deliveries, ...own },
  'GET /bus/subscribers/{id}/deliveries': { ...deliveries, allow: ['viewer', 'operator'], params: subscriberPath },
  'GET /bus/dead_letters': {
    summary: 'Batches that were given up, newest first',
    tag: 'bus',
    allow: readers,
    query: z.object({ ...pageQuery, ...scope }),
    answer: pageOf(deadLetter),
  },
  'GET /bus/dead_letters/{id}': {
    summary: 'A dead letter with its events',
    tag: 'bus',
    allow: readers,
    params: idPath,
    answer: deadLetter.extend({
      /** Null: retention dropped the events before they were delivered. */
      body: z.array(busElement).nullable(),
      complete: z.boolean().describe('false: `body` has the first megabyte of the events only'),
    }),
  },
  'DELETE /bus/dead_letters': {
    summary: 'Delete all dead letters of a subscriber',
    tag: 'bus',
    allow: writers,
    query: z.object(scope),
    answer: z.object({ deleted: z.int() }),
  },
  'DELETE /bus/dead_letters/{id}': {
    summary: 'Delete a dead letter',
    tag: 'bus',
    allow: writers,
    params: idPath,
    status: 204,
    answer: 'none',
  },
  'POST /bus/dead_letters/replay': {
    summary: 'Deliver all dead letters of a subscriber again; each is deleted once it is accepted',
    tag: 'bus',
    allow: writers,
    query: z.object(scope),
    status: 201,
    answer: z.object({ id: id.describe('of the replay') }),
  },
  'POST /bus/dead_letters/{id}/replay': {
    summary: 'Deliver a dead letter again; it is deleted once it is accepted',
    tag: 'bus',
    allow: writers,
    params: idPath,
    status: 201,
    answer: z.object({ id: id.describe('of the replay') }),
    others: { 409: 'its events were dropped' },
  },
});
