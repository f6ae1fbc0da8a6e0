/** Activity of the bus per minute: events in and out, failed attempts, how long events took, and lag. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { time } from '../../shapes.ts';
import { subscriberKey, topicName } from '../shapes.ts';

export const busActivityEndpoints = endpoints({
  'GET /bus/activity': {
    summary: 'Events published and delivered, failed attempts, latency and lag, in steps of minutes',
    tag: 'bus',
    allow: ['viewer', 'operator'],
    query: z.object({
      minutes: z.coerce.number().int().min(1).max(10_080).default(60).describe('how far back, up to a week'),
      topic: topicName
        .optional()
        .describe(
          'only events published to it, and deliveries to its subscribers and their lag, with their other topics',
        ),
      subscriber: subscriberKey.optional().describe('only deliveries to it'),
    }),
    answer: z.object({
      /** Length of a step in minutes, which grows with the span. Steps without activity are included. */
      step: z.int(),
      items: z.array(
        z.object({
          at: time,
          published: z.int(),
          delivered: z.int(),
          failed: z.int(),
          /** Milliseconds; null: nothing was delivered. */
          latency_mean: z.number().nullable(),
          latency_worst: z.number().nullable(),
          /** The most events that were queued at once. */
          queued: z.int(),
          /** The greatest age of the oldest of them, in milliseconds; null: none was queued. */
          oldest_age: z.number().nullable(),
        }),
      ),
    }),
  },
});
