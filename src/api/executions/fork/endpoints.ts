/** Forking: a new execution that begins with the state of another one, as at any revision. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id, idPath } from '../../shapes.ts';
import { changeShape, maxChangeBytes } from '../patch/endpoints.ts';
import { launchKey } from '../shapes.ts';

export const forkEndpoints = endpoints({
  'POST /api/executions/{id}/fork': {
    summary: 'A new execution from the state of this one, now or as at `rev`; its running tasks start again',
    tag: 'executions',
    allow: ['operator'],
    params: idPath,
    body: z
      .strictObject({
        rev: z
          .int()
          .min(1)
          .max(2 ** 31 - 1)
          .optional(),
        ...changeShape,
        key: launchKey.optional(),
      })
      .default({}),
    bodyBytes: maxChangeBytes,
    status: 201,
    answer: z.object({
      id,
      created: z.boolean().describe('false: it existed, with this key'),
      accepted: z.literal(true).optional(),
      detail: z.string().optional(),
    }),
    others: {
      200: 'an execution has this key already: its id',
      202: 'the fork is stored, and begins when a conductor takes it',
      400: 'the new document has faults; every one is listed with its path',
    },
  },
});
