/**
 * Every list in an answer is bounded: it comes in pages, or its endpoint is named here with its bound. A new list without
 * pages fails this test until its bound is named here.
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { tenantEndpoints } from '../../src/api/endpoints.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import type { Endpoint, EndpointTable } from '../../src/http/endpoint.ts';

/** The limits of a document: 2,000 tasks, 1,000 triggers, 10,000 edges (10,000 of older ones). */
const document = 'what one job document may hold';
const bounds: Readonly<Record<string, string>> = {
  'GET /bus/topics': 'the first 10,000 by name, an array as in Routemaster',
  'GET /bus/api_tokens': 'the first 10,000, an array as in Routemaster',
  'GET /healthz': 'a warning for each fault of one process and one tenant',
  'GET /readyz': 'at most one warning, about couriers',
  'GET /api/installation': 'the settings that exist, of Millrace and of PostgreSQL',
  'GET /api/engines': 'the engines in the home, of whose tenants a hundred are named',
  'GET /api/schedulers': 'one row for each tenant',
  'GET /api/workers/{id}': 'the last 100 runs',
  'GET /api/jobs/{id}/tasks': document,
  'GET /api/jobs/{id}/triggers': document,
  'GET /api/jobs/{id}/tokens/{instant}': document,
  'GET /api/jobs/{id}/firings': document,
  'GET /api/jobs/{id}/graph': 'what one job document may hold, and 2,000 edges to other jobs',
  'GET /api/overview': 'ten of each kind',
  'GET /api/activity': 'steps of a span, at most a few hundred',
  'GET /bus/activity': 'steps of a span, at most a few hundred',
  'GET /api/runs/{id}/history': 'a hundred events of one run',
  'GET /api/runs/{id}/attempts': 'a hundred runs',
  'GET /api/runs/{id}/environment': document,
  'GET /api/tasks/{id}': document,
  'GET /int-api/tasks/{id}': document,
  'GET /api/backfills/{id}': document,
  'GET /api/triggers/{id}/preview': 'a count of at most 1,000 instants',
  'GET /api/tasks/{id}/runs/{instant}': 'a thousand runs',
  'GET /api/explain/run/{id}': 'some of each kind',
  'GET /api/explain/token/{id}': 'some of each kind',
  'GET /api/explain/trigger/{id}': 'some of each kind',
  'GET /api/explain/execution/{id}': 'some of each kind',
  'GET /api/explain/delivery/{id}': 'some for each of at most 64 strands',
  'GET /bus/subscriber': 'a thousand topics and 64 strands',
  'GET /bus/subscribers/{id}': 'a thousand topics and 64 strands',
  'GET /bus/dead_letters/{id}': 'the events of one batch',
  'GET /bus/subscriber/batch': 'the events of one batch',
  'GET /api/flows/{name}': 'the steps of one document, and a hundred versions',
  'GET /api/executions/{id}': 'two thousand nodes, and the steps of one document',
  'GET /api/workitems/{id}': 'the fields of one form',
  'GET /bus/export': 'ten thousand subscribers and a hundred thousand topics',
};

function holdsArray(schema: z.core.JSONSchema.BaseSchema): boolean {
  if (schema.type === 'array') return true;
  const parts = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.anyOf ?? []),
    ...(schema.oneOf ?? []),
    ...(schema.allOf ?? []),
  ];
  return parts.some((part) => typeof part === 'object' && holdsArray(part));
}

function isList({ answer }: Endpoint): boolean {
  return typeof answer !== 'string' && holdsArray(z.toJSONSchema(answer, { io: 'input', unrepresentable: 'any' }));
}

const hasPages = ({ query }: Endpoint): boolean => query !== undefined && 'limit' in query.shape;

const all: EndpointTable = { ...tenantEndpoints, ...gatewayEndpoints };
const reading = Object.entries(all).filter(([key]) => key.startsWith('GET '));

describe('list in an answer', () => {
  it('every list comes in pages, or has another bound', () => {
    const unbounded = reading.filter(([key, endpoint]) => isList(endpoint) && !hasPages(endpoint) && !(key in bounds));
    expect(unbounded.map(([key]) => key)).toEqual([]);
  });

  it('every endpoint named here exists, and has no pages', () => {
    const known = new Map<string, Endpoint>(reading);
    const stale = Object.keys(bounds).filter((key) => {
      const endpoint = known.get(key);
      return endpoint === undefined || !isList(endpoint) || hasPages(endpoint);
    });
    expect(stale).toEqual([]);
  });
});
