/** Topics of the event bus, publishing, and the calls by which Routemaster's clients ask whether the bus works. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id, time } from '../../shapes.ts';

/** Any name: a bad one is answered in Routemaster's words. */
const namePath = z.object({
  name: z.string().max(1_000).describe('the name of a topic: 1 to 64 of the characters a-z and _'),
});
const anyKey = ['viewer', 'operator', 'client', 'publisher', 'subscriber'] as const;
const open = { allow: ['anyone'], tag: 'bus' } as const;
const pong = { ...open, summary: 'The time of the bus', answer: z.object({ pong: time }) } as const;

const topic = z.object({
  name: z.string(),
  publisher: z.string().nullable().describe('the name of the key that owns it; null: nobody has published yet'),
  events: z.int().describe('all events that were ever published'),
  last_minute: z.int().describe('events of the last full minute'),
  subscribers: z.int(),
  owner: id.nullable().describe('the identity that owns it'),
  created_at: time,
});

/** For OpenAPI. `bus/publish/event-rules.ts` checks events. */
const postedEvent = z.object({
  type: z.enum(['create', 'update', 'delete', 'noop']),
  url: z.string().max(2_048).describe('what has changed: an https URL without a query string'),
  timestamp: z.int().nullable().optional().describe('milliseconds since 1970; without it, now'),
  data: z.record(z.string(), z.unknown()).nullable().optional().describe('at most MILLRACE_BUS_MAX_DATA bytes of JSON'),
  id: z.string().max(255).nullable().optional().describe('your own id: one of the last 24 hours is stored once'),
  key: z.string().max(255).nullable().optional().describe('the ordering key; without it, the URL'),
  target: z.string().max(255).nullable().optional().describe('the name or id of the only subscriber that receives it'),
});
const idempotencyKey = z
  .string()
  .max(255)
  .optional()
  .describe('a repetition within 24 hours gets the first answer, with the header `Idempotent-Replayed`');

/** The largest body of a request to publish. */
export const maxPostBytes = 4 * 1024 * 1024;

export const topicEndpoints = endpoints({
  'GET /bus/health': { ...open, summary: 'Whether the bus answers', answer: z.object({}) },
  'GET /bus/health/ping': pong,
  'GET /bus/health/ping.json': pong,
  'GET /bus/pulse': {
    summary: 'Whether the bus accepts events',
    tag: 'bus',
    allow: anyKey,
    status: 204,
    answer: 'none',
    others: { 503: 'the database does not answer' },
  },
  'GET /bus/pulse/scaling': {
    summary: 'As pulse, but 1 s later while 100 or more errands are due: a slow answer asks for more couriers',
    tag: 'bus',
    allow: anyKey,
    status: 204,
    answer: 'none',
  },
  'GET /bus/topics': {
    summary: 'Topics by name, with their owners and the number of their events',
    tag: 'bus',
    allow: anyKey,
    answer: z.array(topic),
  },
  'POST /bus/topics/{name}': {
    summary: 'Publish an event, or an array of at most 1,000; the first publisher of a topic owns it',
    tag: 'bus',
    allow: ['client', 'publisher'],
    params: namePath,
    body: 'bytes',
    bodyBytes: maxPostBytes,
    documented: {
      body: z.union([postedEvent, z.array(postedEvent).min(1).max(1_000)]),
      headers: z.object({ 'Idempotency-Key': idempotencyKey }),
    },
    answer: z.union([
      z.object({ id: z.string().describe('the number of the event, after the commit') }),
      z.object({
        first: z.string().describe('the number of the first event of the array'),
        last: z.string().describe('the number of the last one'),
      }),
    ]),
    others: {
      403: 'topic claimed: another key owns the topic',
      422: 'the Idempotency-Key was used with another body',
      429: 'too many events wait in this process; Retry-After says when to try again',
    },
  },
  'DELETE /bus/topics/{name}': {
    summary: 'Delete a topic of which the caller is the owner, or any topic as an operator',
    tag: 'bus',
    allow: ['operator', 'client', 'publisher'],
    params: namePath,
    status: 204,
    answer: 'none',
    others: { 403: 'another key owns the topic', 404: 'topic not found' },
  },
  'PUT /bus/topics/{name}/owner': {
    summary: 'Give a topic to another key, by the identity that the list of keys shows',
    tag: 'bus',
    allow: ['operator'],
    params: namePath,
    body: z.strictObject({ id, name: z.string().min(1).max(200) }),
    ignoresContentType: true,
    status: 204,
    answer: 'none',
  },
});
