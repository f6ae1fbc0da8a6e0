/**
 * The worst output, stash values and results of runs, and answers of people. While these are read or written, no other client waits for more than
 * 200 ms.
 */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { maxResultBytes } from '../../src/contract/wire.ts';
import { newId } from '../../src/kernel/id.ts';
import { measureBlocking } from '../harness/blocking.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { openRaw } from '../harness/raw-http.ts';
import { until } from '../harness/until.ts';

const longestWaitMs = 200;
const timeoutMs = 120_000;

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.call('PUT /api/projects', { body: { name: 'p' } });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function expectNobodyWaits(work: () => Promise<void>): Promise<void> {
  const watched = { url: product.url, pid: product.child.pid ?? 0 };
  expect(await measureBlocking(watched, work, longestWaitMs)).toBeLessThanOrEqual(longestWaitMs);
}

const headers = () => ({ authorization: `Bearer ${product.rootKey}` });

/** Runs one process, and waits for its end. */
async function runProcess(process: object): Promise<{ id: string; state: string; reason: string | null }> {
  const body = JSON.stringify({ project: 'p', name: 'j', tasks: [{ name: 'a', process }] });
  const job = await product.call('POST /api/jobs', { body });
  const { runs } = await product.call('POST /api/jobs/{id}/run', { params: { id: job.id }, body: {} });
  const [id = ''] = runs;
  const { state, reason } = await until(
    'the run has ended',
    async () => {
      const run = await product.call('GET /api/runs/{id}', { params: { id } });
      return run.finished_at === null ? undefined : run;
    },
    60_000,
  );
  return { id, state, reason };
}

it(
  'other clients do not wait while a WebSocket follows a log of a million empty lines',
  async () => {
    const { id, state } = await runProcess({ command: ['sh', '-c', 'yes "" | head -c 1000000'] });
    expect(state).toBe('success');
    await expectNobodyWaits(async () => {
      const socket = new WebSocket(`${product.url.replace('http', 'ws')}/api/task_runs/${id}/logs`, {
        headers: headers(),
      });
      let lines = 0;
      socket.on('message', () => lines++);
      await once(socket, 'close');
      expect(lines).toBe(1_000_000);
    });
  },
  timeoutMs,
);

it(
  'a WebSocket whose client sends pings and reads nothing gets answers to a few of them only',
  async () => {
    const { id: job } = await product.call('POST /api/jobs', {
      body: JSON.stringify({
        project: 'p',
        name: 'silent',
        tasks: [{ name: 'a', process: { command: ['sleep', '600'] } }],
      }),
    });
    const { runs } = await product.call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });
    const [id = ''] = runs;
    const { socket, text, waitForAnswers } = openRaw(product.url);
    const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13';
    const handshake = `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\nAuthorization: Bearer ${product.rootKey}`;
    socket.write(`GET /api/task_runs/${id}/logs HTTP/1.1\r\nHost: localhost\r\n${handshake}\r\n\r\n`);
    await waitForAnswers(1);
    expect(text()).toContain('101 Switching Protocols');
    socket.pause();
    // a masked ping with 125 zeros
    const ping = Buffer.from([0x89, 0xfd, 0, 0, 0, 0, ...Buffer.alloc(125)]);
    const pings = Buffer.concat(Array.from({ length: 10_000 }, () => ping));
    for (let sent = 0; sent < 32_000_000; sent += pings.length)
      await new Promise<void>((resolve, reject) => socket.write(pings, (error) => (error ? reject(error) : resolve())));
    // the frame that ends the WebSocket
    socket.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
    socket.resume();
    await once(socket, 'close');
    expect(text().length).toBeLessThan(16_000_000);
    await product.call('POST /api/runs/{id}/cancel', { params: { id } });
  },
  timeoutMs,
);

it(
  'a run whose variables name 100 MB of stash values ends with that reason, and other clients do not wait',
  async () => {
    const names = Array.from({ length: 25 }, (_, i) => `large-${i}`);
    for (const name of names) {
      const value = { method: 'PUT', headers: headers(), body: Buffer.alloc(4_000_000, 'x') };
      expect((await fetch(`${product.url}/api/stash/${name}`, value)).status).toBe(201);
    }
    const env = Object.fromEntries(names.map((stash, i) => [`LARGE_${i}`, { stash }]));
    await expectNobodyWaits(async () => {
      const { state, reason } = await runProcess({ command: ['true'], env });
      expect([state, reason]).toEqual(['error', expect.stringContaining('bytes from the stash; at most 524288')]);
    });
  },
  timeoutMs,
);

it(
  'other clients do not wait while workers report results of very many values',
  async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'results', role: 'worker' } });
    const { id: tenant } = await product.call('GET /api/tenants/{name}', { params: { name: 'default' } });
    const result = `[${'[],'.repeat(Math.floor(maxResultBytes / 3) - 1)}0]`;
    const ended = { lease: 1, state: 'success', reason: null, exit_code: 0, started_at: null, result };
    const report = async (): Promise<void> => {
      const reports = Array.from({ length: 15 }, () => ({ tenant, run: newId(), ...ended }));
      const answer = await fetch(`${product.url}/internal/report`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ worker: newId(), incarnation: 1, reports }),
      });
      expect([answer.status, await answer.json()]).toMatchObject([200, { accepted: 15 }]);
    };
    await expectNobodyWaits(async () => {
      await Promise.all([report(), report()]);
    });
  },
  timeoutMs,
);

it(
  'other clients do not wait while tasks of people are answered with thousands of fields that their form lacks',
  async () => {
    const fields = Array.from({ length: 100 }, (_, i) => [`a_field_of_the_form_${i}`, 'text'] as const);
    const ask = {
      task: 'ask',
      human: { assignee: 'meg', title: 'ok?', form: Object.fromEntries(fields) },
      timeout: '1d',
    };
    await product.call('POST /api/flows', { body: JSON.stringify({ flow: 'asks', steps: [ask] }) });
    const { id: execution } = await product.call('POST /api/executions', { body: { flow: 'asks' } });
    const item = await until('somebody is asked', async () => {
      const { items } = await product.call('GET /api/workitems', { query: { execution } });
      return items[0]?.id;
    });
    const body = JSON.stringify(
      Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`the_field_of_a_form_${i}`, 1])),
    );
    const answer = { method: 'POST', headers: { ...headers(), 'content-type': 'application/json' }, body };
    await expectNobodyWaits(async () => {
      expect((await fetch(`${product.url}/api/workitems/${item}/answer`, answer)).status).toBe(400);
    });
  },
  timeoutMs,
);
