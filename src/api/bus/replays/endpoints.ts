/** Replays: deliver a range of the past again, beside the ordinary deliveries. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id, idPath } from '../../shapes.ts';
import { logPoint, own, pageOf, pageQuery, replay, subscriberPath } from '../shapes.ts';

const start = {
  summary: 'Deliver a range of the past again, with the same batch ids; ordinary deliveries continue',
  tag: 'bus',
  body: z.strictObject({
    from: logPoint.describe('the first event: its number, or a time'),
    to: logPoint.optional().describe('the last event: its number, or a time; without it, the newest one'),
    only_undelivered: z.boolean().default(false).describe('only what was given up or dropped'),
  }),
  ignoresContentType: true,
  status: 201,
  answer: z.object({ id }),
} as const;

const list = {
  summary: 'Replays, newest first',
  tag: 'bus',
  query: z.object(pageQuery),
  answer: pageOf(replay),
} as const;

const show = { summary: 'A replay and how far it has come', tag: 'bus', answer: replay } as const;

const cancel = {
  summary: 'Cancel a replay; what was sent stays sent',
  tag: 'bus',
  status: 204,
  answer: 'none',
  others: { 409: 'it has ended' },
} as const;

const path = subscriberPath.extend({ replay: id });

export const replayEndpoints = endpoints({
  'POST /bus/subscriber/replays': { ...start, ...own },
  'GET /bus/subscriber/replays': { ...list, ...own },
  'GET /bus/subscriber/replays/{id}': { ...show, ...own, params: idPath },
  'DELETE /bus/subscriber/replays/{id}': { ...cancel, ...own, params: idPath },
  'POST /bus/subscribers/{id}/replays': { ...start, allow: ['operator'], params: subscriberPath },
  'GET /bus/subscribers/{id}/replays': { ...list, allow: ['viewer', 'operator'], params: subscriberPath },
  'GET /bus/subscribers/{id}/replays/{replay}': { ...show, allow: ['viewer', 'operator'], params: path },
  'DELETE /bus/subscribers/{id}/replays/{replay}': { ...cancel, allow: ['operator'], params: path },
});
