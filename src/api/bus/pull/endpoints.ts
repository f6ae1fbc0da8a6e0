/** Pull: a subscriber of kind `pull` fetches the batches that a courier would send, and acknowledges them. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { time } from '../../shapes.ts';
import { busElement, own } from '../shapes.ts';

const batchPath = z.object({ id: z.string().max(100).describe('the id of a batch') });
const lease = z.strictObject({
  lease: z.int().optional().describe('of the batch; an outdated one is refused. Without it, the batch alone counts'),
});

export const pullEndpoints = endpoints({
  'GET /bus/subscriber/batch': {
    summary: 'Fetch the next batch of a `pull` subscriber. It is handed out again unless it is acknowledged in time',
    tag: 'bus',
    ...own,
    query: z.object({
      wait: z.coerce.number().int().min(0).max(60).default(0).describe('seconds to wait for a batch'),
    }),
    answer: z.object({
      id: z.string(),
      /** Counts how often this batch was handed out. */
      lease: z.int(),
      until: time,
      events: z.array(busElement),
    }),
    others: { 204: 'there is no batch', 409: 'the subscriber is not of kind `pull`, or it is paused' },
  },
  'POST /bus/subscriber/batch/{id}/ack': {
    summary: 'Acknowledge a batch: the next one follows',
    tag: 'bus',
    ...own,
    params: batchPath,
    body: lease.default({}),
    ignoresContentType: true,
    status: 204,
    answer: 'none',
    others: { 409: 'it is not the current batch, or the lease has passed on' },
  },
  'POST /bus/subscriber/batch/{id}/nack': {
    summary: 'Give a batch back: it is handed out again, at once or after `delay` milliseconds',
    tag: 'bus',
    ...own,
    params: batchPath,
    body: lease.extend({ delay: z.int().min(0).max(3_600_000).default(0) }).default({ delay: 0 }),
    ignoresContentType: true,
    status: 204,
    answer: 'none',
    others: { 409: 'it is not the current batch, or the lease has passed on' },
  },
  'POST /bus/subscriber/batch/{id}/extend': {
    summary: 'Keep a batch for another 30 s',
    tag: 'bus',
    ...own,
    params: batchPath,
    body: lease.default({}),
    ignoresContentType: true,
    answer: z.object({ until: time }),
    others: { 409: 'it is not the current batch, or the lease has passed on' },
  },
});
