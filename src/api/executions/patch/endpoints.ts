/** Changing a live execution: its fields, and steps of its tree. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { idPath } from '../../shapes.ts';
import { idempotencyKey } from '../shapes.ts';

/** Fields to set, and steps to replace. */
export const changeShape = {
  fields: z.record(z.string(), z.unknown()).optional().describe('fields to set, at the top of `f`'),
  swap: z
    .record(z.string().max(1_000), z.array(z.unknown()).max(1_000))
    .optional()
    .describe(
      'by the id of a live node, or by the place of a step in the document (`steps[1].then[0]`): the steps that replace it',
    ),
} as const;

export const maxChangeBytes = 2 * 1024 * 1024;

export const patchEndpoints = endpoints({
  'PATCH /api/executions/{id}': {
    summary: 'Set fields, and replace steps of the tree of one execution; `dry_run` only shows what would happen',
    tag: 'executions',
    allow: ['operator'],
    params: idPath,
    body: z.strictObject({
      ...changeShape,
      dry_run: z.boolean().default(false),
      force: z.boolean().default(false).describe('cancel tasks that are under way inside a replaced step'),
    }),
    bodyBytes: maxChangeBytes,
    documented: { headers: idempotencyKey },
    answer: z.object({
      outcome: z.enum(['committed', 'known', 'accepted', 'dry_run']),
      detail: z.string().optional(),
      diff: z.object({
        tree: z
          .array(z.object({ path: z.string(), from: z.string().nullable(), to: z.string().nullable() }))
          .describe('steps that differ: verb and title before and after; at most 1,000'),
        cancelled: z.array(z.string()).describe('nodes that end'),
        timers_removed: z.array(z.string()),
      }),
    }),
    others: {
      202: 'the change is stored, and takes effect when a conductor takes it',
      400: 'the new document has faults; every one is listed with its path',
      404: 'there is no such execution, node or step',
      409: 'a task is under way inside a replaced step (`force` cancels it), or the execution has ended',
    },
  },
});
