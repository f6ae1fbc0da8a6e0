import { expect, it } from 'vitest';
import type { Caller } from '../../contract/roles.ts';
import { announcedBody, BodyBudget } from './body-budget.ts';

const of = (tenantId: string | null, actor = 'key:x'): Caller => {
  return { kind: 'key', role: 'operator', tenantId, tenant: tenantId, actor };
};
const sending = (headers: Record<string, string>, method = 'POST') =>
  announcedBody(new Request('http://x/', { method, headers }));
const bytes = (length: number) => sending({ 'content-length': String(length) });
const limits = { freeBytes: 0, totalBytes: 100, shareBytes: 60, maxBodyBytes: 60 };
const refusal = expect.objectContaining({ code: 'overloaded', status: 503 }) as Error;

it('bodies beyond the share of a tenant are rejected until others are answered, and those of other tenants are accepted', () => {
  const budget = new BodyBudget(limits);
  const first = budget.take(bytes(50), of('a'));
  budget.take(bytes(10), of('a'));
  expect(() => budget.take(bytes(1), of('a', 'key:y'))).toThrow(refusal);
  budget.take(bytes(40), of('b'));
  expect(() => budget.take(bytes(1), of('c'))).toThrow(refusal);
  first();
  budget.take(bytes(50), of('a'));
});

it('keys of the whole installation have a share of their own', () => {
  const budget = new BodyBudget(limits);
  budget.take(bytes(60), of(null, 'key:worker'));
  expect(() => budget.take(bytes(1), of(null, 'key:worker'))).toThrow(refusal);
  budget.take(bytes(1), of(null, 'key:root'));
});

it('a body of unknown length counts as the longest one, and a request without a body as nothing', () => {
  const budget = new BodyBudget(limits);
  const first = budget.take(sending({ 'transfer-encoding': 'chunked' }), of('a'));
  expect(() => budget.take(bytes(1), of('a'))).toThrow(refusal);
  first();
  budget.take(bytes(60), of('a'));
  budget.take(sending({}, 'DELETE'), of('a'));
  budget.take(sending({ 'content-length': '1000' }, 'GET'), of('a'));
});
