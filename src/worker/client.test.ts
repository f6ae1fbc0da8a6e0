import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Log, silent } from '../kernel/log.ts';
import type { Carry } from './transport.ts';
import { Client, Outage } from './client.ts';

function clientOver(carry: Carry, log: Log = silent): Client {
  return new Client({
    url: 'http://api.example/under/',
    key: 'k',
    carry,
    outage: new Outage(log, () => Date.now()),
  });
}

const identity = { worker: 'w', incarnation: 1 };

it('any number of requests may wait on one signal, and an abort ends all', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  const carry: Carry = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  const over = new AbortController();
  const client = clientOver(carry);
  const all = Array.from({ length: 30 }, () => client.report({ ...identity, reports: [] }, over.signal));
  await sleep(10);
  over.abort();
  const outcomes = await Promise.allSettled(all);
  process.off('warning', note);
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
  expect(warnings).toEqual([]);
});

it('the path of the address is kept, and an invalid answer counts as none', async () => {
  const asked: string[] = [];
  const client = clientOver(async ({ url }) => {
    asked.push(url.href);
    return { status: 200, text: 'not JSON' };
  });
  await expect(client.heartbeat({ ...identity } as never, 1_000)).rejects.toMatchObject({ code: 'unreachable' });
  expect(asked).toEqual(['http://api.example/under/internal/heartbeat']);
});

it.each([
  { status: 400, text: 'no', code: 'bad_request' },
  { status: 401, text: 'no', code: 'unreachable' },
  { status: 308, text: 'see https://elsewhere.example/', code: 'unreachable' },
  { status: 422, text: '{"detail":"no', code: 'bad_request' },
  { status: 503, text: '{"code":"tenant_unavailable"}', code: 'tenant_unavailable' },
])('the status $status becomes the error $code, with the answered text', async ({ status, text, code }) => {
  const client = clientOver(async () => ({ status, text }));
  const asking = client.heartbeat({ ...identity } as never, 1_000);
  await expect(asking).rejects.toMatchObject({ code, message: `heartbeat was answered ${status}: ${text}` });
});

it.each([
  ['undecryptable', 'stash entry db: the value was encrypted'],
  ['stash_too_large', 'its variables take 1200066 bytes from the stash'],
])('the stash error %s is thrown at once with its detail, and does not count as an outage', async (code, detail) => {
  const said: unknown[] = [];
  const log = {
    ...silent,
    warn: (...words: unknown[]) => said.push(words),
    error: (...words: unknown[]) => said.push(words),
  };
  const text = JSON.stringify({ code, detail });
  const client = clientOver(async () => ({ status: 422, text }), log);
  const asking = client.secrets({ tenant: 't', run: 'r', lease: 1, names: ['db'] }, new AbortController().signal);
  await expect(asking).rejects.toMatchObject({ code, message: detail });
  expect(said).toEqual([]);
});
