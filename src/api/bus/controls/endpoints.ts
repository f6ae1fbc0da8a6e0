/** Control of a subscriber: pause, resume, a test delivery, and signing secrets. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { delivery, logPoint, own, subscriberDetail, subscriberPath } from '../shapes.ts';

const pause = {
  summary: 'Stop deliveries; events are kept, and continue to be counted',
  tag: 'bus',
  body: z.strictObject({ reason: z.string().max(500).optional().describe('shown beside the state') }).default({}),
  ignoresContentType: true,
  answer: subscriberDetail,
} as const;

const resume = {
  summary:
    'Continue deliveries, also of a disabled subscriber. `from` moves its position: `now` skips what is queued, a number or a time rewinds or skips',
  tag: 'bus',
  body: z
    .strictObject({
      from: z
        .union([z.literal('now'), logPoint])
        .optional()
        .describe('without it, where it stopped'),
    })
    .default({}),
  ignoresContentType: true,
  answer: subscriberDetail,
} as const;

const test = {
  summary: 'Send a test event to the callback. Waits up to 5 s for the result',
  tag: 'bus',
  answer: z.object({
    /** The id of the test; null: no courier has sent it yet. It will appear in the list of deliveries. */
    batch: z.string().nullable(),
    delivery: delivery.nullable(),
  }),
  others: { 202: 'no result yet: it will appear in the list of deliveries', 409: 'it has no callback' },
} as const;

const secret = {
  summary:
    'Create a signing secret, shown only here. The one before stays valid until it is ended or the next one is created',
  tag: 'bus',
  body: z
    .strictObject({
      secret: z.string().max(100).optional().describe('`whsec_` and 24 to 64 bytes in Base64; without it, one is made'),
    })
    .default({}),
  ignoresContentType: true,
  status: 201,
  answer: z.object({ secret: z.string(), valid: z.int().describe('secrets that are valid now') }),
} as const;

const endSecret = {
  summary: 'End the older of two signing secrets; with `all=true`, deliveries are no longer signed',
  tag: 'bus',
  query: z.object({
    all: z
      .enum(['true', 'false'])
      .default('false')
      .describe('end both')
      .transform((text) => text === 'true'),
  }),
  status: 204,
  answer: 'none',
} as const;

const operated = { allow: ['operator'], params: subscriberPath } as const;

export const controlEndpoints = endpoints({
  'POST /bus/subscriber/pause': { ...pause, ...own },
  'POST /bus/subscriber/resume': { ...resume, ...own },
  'POST /bus/subscriber/test': { ...test, ...own },
  'POST /bus/subscriber/secret': { ...secret, ...own },
  'DELETE /bus/subscriber/secret': { ...endSecret, ...own },
  'POST /bus/subscribers/{id}/pause': { ...pause, ...operated },
  'POST /bus/subscribers/{id}/resume': { ...resume, ...operated },
  'POST /bus/subscribers/{id}/test': { ...test, ...operated },
  'POST /bus/subscribers/{id}/secret': { ...secret, ...operated },
  'DELETE /bus/subscribers/{id}/secret': { ...endSecret, ...operated },
});
