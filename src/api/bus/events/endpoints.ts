/** Events of the bus log by number: a page, a long poll, or a stream. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { busElement, eventNumber, maxTopics, topicName } from '../shapes.ts';

/** `orders,invoices` */
const topicList = z.string().transform((text, context) => {
  const parsed = z.array(topicName).min(1).max(maxTopics).safeParse(text.split(','));
  if (parsed.success) return parsed.data;
  context.addIssue({ code: 'custom', message: 'name topics, separated by commas: orders,invoices' });
  return z.NEVER;
});

export const eventEndpoints = endpoints({
  'GET /bus/events': {
    summary:
      'Events of topics in order, as a page, or with `Accept: text/event-stream` as a stream. Events for one subscriber are shown to that one only',
    tag: 'bus',
    allow: ['viewer', 'operator', 'client', 'subscriber'],
    query: z.object({
      topics: topicList.optional().describe('separated by commas; without it, all topics'),
      after: eventNumber
        .optional()
        .describe('the number of the last event that is known; a stream without it begins at the newest event'),
      wait: z.coerce.number().int().min(0).max(60).default(0).describe('seconds to wait for an event'),
      limit: z.coerce.number().int().min(1).max(1000).default(100),
    }),
    /** `next`: the `after` of the next call. It moves on even if no event matches. */
    answer: z.object({ items: z.array(busElement), next: eventNumber }),
  },
});
