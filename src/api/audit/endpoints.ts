/** The audit: who did what. Read from the event log, newest first. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { flag, limit, time } from '../shapes.ts';

const entry = z.object({
  seq: z.int(),
  at: time,
  actor: z.string().nullable(),
  topic: z.string(),
  type: z.string(),
  subject: z.string().nullable(),
  /** The name of the subject, if it is still known: `project/job`, `project/job/task`, `project/stash/key`. */
  name: z.string().nullable(),
  /** The page of the subject in the web interface; null if it has none. */
  page: z
    .object({ kind: z.enum(['run', 'job', 'project', 'backfill', 'subscriber', 'flow', 'execution']), id: z.string() })
    .nullable(),
  body: z.unknown(),
});

export const auditQuery = z.object({
  limit: limit(50),
  before: z.coerce
    .number()
    .int()
    .min(1)
    .max(Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('`next` of the previous page'),
  actor: z.string().max(200).optional(),
  topic: z.string().max(200).optional(),
  machines: flag.describe('also include events of schedulers and workers'),
});
export const auditPage = z.object({ items: z.array(entry), next: z.int().nullable() });

export const auditEndpoints = endpoints({
  'GET /api/audit': {
    summary: 'Who did what in this tenant, newest first; keys and sessions are in `/api/installation/audit`',
    tag: 'audit',
    allow: ['viewer', 'operator'],
    query: auditQuery,
    answer: auditPage,
  },
});
