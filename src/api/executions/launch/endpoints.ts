/** Launching executions: one, or many at once. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id } from '../../shapes.ts';
import { flowName, input, launchKey, version } from '../shapes.ts';

/** Bytes of the body of one launch: a megabyte of input, and the rest. */
export const maxLaunchBytes = 1024 * 1024 + 64 * 1024;
/** Larger inputs go into more requests: parsing 16 MB would hold up everybody else for 300 ms. */
const maxBulkBytes = 4 * 1024 * 1024;

export const launchEndpoints = endpoints({
  'POST /api/executions': {
    summary: 'Launch an execution of a flow. With a `key` that an execution has already, nothing is started',
    tag: 'executions',
    allow: ['operator', 'task'],
    body: z.strictObject({
      flow: flowName,
      version: version.optional().describe('another one than the newest'),
      input: input.default({}),
      key: launchKey.optional(),
    }),
    bodyBytes: maxLaunchBytes,
    status: 201,
    answer: z.object({
      id,
      created: z.boolean().describe('false: it existed, with this key'),
      accepted: z.literal(true).optional().describe('it is stored, and begins when a conductor takes it'),
      detail: z.string().optional().describe('why it is only accepted'),
    }),
    others: {
      200: 'an execution has this key already: its id',
      202: 'the launch is stored, and begins when a conductor takes it; `detail` says why it has not',
      404: 'there is no such flow or version',
    },
  },
  'POST /api/executions/bulk': {
    summary: 'Launch up to 1,000 executions of a flow; each item has its own outcome',
    tag: 'executions',
    allow: ['operator', 'task'],
    body: z.strictObject({
      flow: flowName,
      version: version.optional(),
      items: z
        .array(z.strictObject({ input: input.default({}), key: launchKey.optional() }))
        .min(1)
        .max(1_000),
    }),
    bodyBytes: maxBulkBytes,
    answer: z.object({
      items: z.array(
        z.object({
          id: id.nullable().describe('with `known`, of the execution that has the key; null if it was refused'),
          outcome: z.enum(['created', 'known', 'accepted', 'refused']),
          code: z.string().optional(),
          detail: z.string().optional(),
        }),
      ),
    }),
    others: { 404: 'there is no such flow or version' },
  },
});
