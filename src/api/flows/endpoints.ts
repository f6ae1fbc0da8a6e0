/** Definitions of flows: apply, list, read, delete. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { flowName, pageOf, pageQuery, tree, version } from '../executions/shapes.ts';
import { fault, flag, time } from '../shapes.ts';

const namePath = z.object({ name: flowName });

const flow = z.object({
  name: z.string(),
  version: z.int().describe('the newest'),
  description: z.string().nullable(),
  project: z.string().nullable().describe('the project whose stash and configuration its tasks use'),
});

const listedFlow = flow.extend({
  updated_at: time,
  updated_by: z.string(),
  counts: z
    .object({ running: z.int(), waiting: z.int(), paused: z.int(), incident: z.int() })
    .describe('its executions that have not ended; beyond 10,000 of the tenant they are a part of all'),
});

const applied = z.object({
  name: z.string(),
  version: z.int().describe('the version that it has, or would have'),
  changed: z.boolean(),
  warnings: z.array(fault),
});

export const flowEndpoints = endpoints({
  'GET /api/flows': {
    summary: 'Flows by name, with counts of their executions',
    tag: 'flows',
    allow: ['viewer', 'operator'],
    query: z.object(pageQuery),
    answer: pageOf(listedFlow),
  },
  'POST /api/flows': {
    summary: 'Apply a flow document (YAML or JSON): it becomes the newest version, unless it is equal to that',
    tag: 'flows',
    allow: ['operator'],
    query: z.object({ dry_run: flag.describe('check the document only') }),
    body: 'document',
    bodyBytes: 1024 * 1024,
    status: 201,
    answer: applied,
    others: {
      200: 'a dry run, or the document is equal to the newest version',
      400: 'the document has faults; every one is listed with its path',
      415: 'not JSON or YAML',
    },
  },
  'POST /api/flows/check': {
    summary: 'Check a flow document: a dry run that returns faults as a result instead of an error',
    tag: 'flows',
    allow: ['operator'],
    body: 'document',
    bodyBytes: 1024 * 1024,
    answer: z.object({
      faults: z.array(fault),
      /** Null if there are faults. */
      applied: applied.nullable(),
    }),
    others: { 415: 'not JSON or YAML' },
  },
  'GET /api/flow-schema': {
    summary: "The JSON Schema of a flow document, made from the validator's own rules",
    tag: 'flows',
    allow: ['anyone'],
    answer: z.record(z.string(), z.unknown()),
  },
  'GET /api/flows/{name}': {
    summary: 'A flow with its document, the tree of its steps, and its versions',
    tag: 'flows',
    allow: ['viewer', 'operator'],
    params: namePath,
    query: z.object({ version: version.optional().describe('another one than the newest') }),
    answer: flow.extend({
      version: z.int().describe('the version that is shown'),
      document: z.record(z.string(), z.unknown()),
      tree,
      versions: z
        .array(z.object({ version: z.int(), at: time, actor: z.string() }))
        .describe('newest first, at most 100'),
      functions: z.array(z.string()).describe('names of the functions that a conductor must host'),
      warnings: z.array(fault),
    }),
  },
  'DELETE /api/flows/{name}': {
    summary: 'Delete a flow: it cannot be launched again; its executions go on',
    tag: 'flows',
    allow: ['operator'],
    params: namePath,
    status: 204,
    answer: 'none',
  },
});
