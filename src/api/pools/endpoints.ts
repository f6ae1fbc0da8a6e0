/** Pools: places that tasks of several jobs share. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { nameFault } from '../../documents/name.ts';

/** The same rule as in job documents. */
const name = z.string().superRefine((text, context) => {
  const message = nameFault(text);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});
const namePath = z.object({ name });

const pool = z.object({
  name: z.string(),
  places: z.int(),
  /** Queued and running runs that have a place. More than `places` if these were lowered meanwhile. */
  used: z.int(),
  /** Runs that wait for a place. */
  waiting: z.int(),
});

export const poolEndpoints = endpoints({
  'GET /api/pools': {
    summary: 'Pools by name, with their places, how many of them are used, and how many runs wait',
    tag: 'pools',
    allow: ['viewer', 'operator'],
    query: z.object({ limit: z.coerce.number().int().min(1).max(1000).default(100), cursor: z.string().optional() }),
    answer: z.object({ items: z.array(pool), next: z.string().nullable() }),
  },
  'PUT /api/pools/{name}': {
    summary: 'Create a pool or change its places; with 0 places, no run that needs it starts',
    tag: 'pools',
    allow: ['operator'],
    params: namePath,
    body: z.strictObject({ places: z.int().min(0).max(1_000_000) }),
    answer: pool,
    others: { 201: 'the pool is new' },
  },
  'DELETE /api/pools/{name}': {
    summary: 'Delete a pool that no task names',
    tag: 'pools',
    allow: ['operator'],
    params: namePath,
    status: 204,
    answer: 'none',
    others: { 409: 'a task names it' },
  },
});
