import { expect, it } from 'vitest';
import { ParseQueue } from './parse-queue.ts';

/** Work that ends when the test ends it. */
function makeDesk(threads: number, waitingPerTenant = 8) {
  const queue = new ParseQueue({ threads, waitingPerTenant });
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const give = (tenant: string, name: string, signal?: AbortSignal): Promise<void> =>
    queue.run(tenant, () => new Promise<void>((resolve) => (begun.push(name), ends.set(name, resolve))), signal);
  const end = async (name: string): Promise<void> => {
    await new Promise(setImmediate);
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { begun, give, end };
}

it('tenants take turns, no matter which of them sent more documents', async () => {
  const { begun, give, end } = makeDesk(1);
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => give(name[0] ?? '', name));
  for (const name of ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']) await end(name);
  await Promise.all(all);
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

it('a tenant has one thread at a time, even if others are free', async () => {
  const { begun, give, end } = makeDesk(2);
  const all = ['a1', 'a2', 'b1'].map((name) => give(name[0] ?? '', name));
  await new Promise(setImmediate);
  expect(begun).toEqual(['a1', 'b1']);
  await end('b1');
  expect(begun).toEqual(['a1', 'b1']);
  await end('a1');
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  await end('a2');
  await Promise.all(all);
});

it('a tenant with too many waiting documents is rejected, and another tenant is not', async () => {
  const { give, end } = makeDesk(1, 1);
  const all = [give('a', 'a1'), give('a', 'a2')];
  await expect(give('a', 'a3')).rejects.toMatchObject({ code: 'overloaded', headers: { 'retry-after': '5' } });
  all.push(give('b', 'b1'));
  for (const name of ['a1', 'b1', 'a2']) await end(name);
  await Promise.all(all);
});

it('work whose client has disconnected leaves the queue and frees its place', async () => {
  const { begun, give, end } = makeDesk(1, 1);
  const client = new AbortController();
  const first = give('a', 'a1');
  const left = give('a', 'a2', client.signal);
  client.abort();
  await expect(left).rejects.toMatchObject({ code: 'bad_request' });
  await expect(give('a', 'a3', client.signal)).rejects.toMatchObject({ code: 'bad_request' });
  const next = give('a', 'a4');
  await end('a1');
  await end('a4');
  await Promise.all([first, next]);
  expect(begun).toEqual(['a1', 'a4']);
});
