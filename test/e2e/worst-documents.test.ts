/**
 * The worst documents, placeholders and params that a client may send, while another client measures that its requests do not
 * wait. Waits are scaled to an idle machine: another process measures meanwhile how much slower this machine is at the moment,
 * by the time that a fixed piece of work takes. The best of a few tries counts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pause } from '../../src/kernel/service.ts';
import { type Product, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let product: Product;
let pacer: { readonly child: ChildProcess; readonly url: string };
beforeAll(async () => {
  pacer = await startPacer();
  product = await startProduct();
  await product.call('PUT /api/projects', { body: { name: 'p' } });
});
afterAll(async () => {
  pacer.child.kill();
  await product.stop();
});

/** The longest wait that a client may have. */
const mostWaitMs = 200;
const tries = 5;
const timeoutMs = 180_000;

/** Answers each request with the time that it took to work for 5 ms. */
const pacerProgram = `
  const server = require('node:http').createServer((_, answer) => {
    const startedMs = performance.now();
    const before = process.cpuUsage();
    for (let worked = 0; worked < 5_000; ) {
      const { user, system } = process.cpuUsage(before);
      worked = user + system;
    }
    answer.end(String(performance.now() - startedMs));
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

async function startPacer(): Promise<typeof pacer> {
  const child = spawn(process.execPath, ['-e', pacerProgram], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: `http://127.0.0.1:${port.toString().trim()}` };
}

async function ask(url: string): Promise<string> {
  return (await fetch(url)).text();
}

/** The longest wait of a client that asks all the time until the work is done, as it were on an idle machine. */
async function longestWait(work: Promise<unknown>): Promise<number> {
  let isDone = false;
  const done = work.finally(() => (isDone = true));
  let [longestMs, paceMs, rounds] = [0, 0, 0];
  do {
    const startedMs = performance.now();
    const [, pace] = await Promise.all([
      ask(`${product.url}/healthz`).then(() => (longestMs = Math.max(longestMs, performance.now() - startedMs))),
      ask(pacer.url),
    ]);
    paceMs += Number(pace);
    rounds++;
    await pause(5);
  } while (!isDone);
  await done;
  return longestMs / Math.max(1, paceMs / rounds / 5);
}

async function expectNobodyWaits(attack: () => Promise<unknown>): Promise<void> {
  const waits: number[] = [];
  for (let i = 0; i < tries; i++) {
    const waitMs = await longestWait(attack());
    if (waitMs <= mostWaitMs) return;
    waits.push(Math.round(waitMs));
  }
  expect.fail(`others waited up to ${waits.join(', ')} ms, in ${tries} tries`);
}

function send(path: string, body: string, type = 'application/json'): Promise<Response> {
  const headers = { authorization: `Bearer ${product.rootKey}`, 'content-type': type };
  return fetch(`${product.url}${path}`, { method: 'POST', headers, body });
}

/** Looks at a document without applying it. */
async function check(text: string, type: string): Promise<void> {
  const answer = await send('/api/jobs?dry_run=true', text, type);
  expect([200, 400, 413]).toContain(answer.status);
  await answer.text();
}

const job = (more: object): string => JSON.stringify({ project: 'p', name: 'j', ...more });
const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const task = (i: number, ...parents: readonly number[]) => ({
  name: `t${i}`,
  depends: parents.map((p) => `task/t${p}`),
});
const zones = Intl.supportedValuesOf('timeZone');
const cron = (i: number): string => `${i % 60} ${Math.floor(i / 60) % 24} * * *`;
const start = '2022-01-01T00:00:00Z';

describe('other clients do not wait while a client sends YAML', () => {
  it.each([
    ['quotes', () => '"'.repeat(999_000)],
    ['open brackets', () => '['.repeat(95_000)],
    ['commas', () => `a: [${','.repeat(95_000)}]`],
    ['a long list', () => `a:\n${'- 1\n'.repeat(49_000)}`],
    ['many keys', () => many(49_000, (i) => `k${i}: 1`).join('\n')],
    ['many anchors', () => `a: [${many(48_000, (i) => `&a${i} 1`).join(',')}]`],
    ['many documents', () => '...\n'.repeat(95_000)],
    ['comments', () => `${'#\n'.repeat(49_000)}a: 1`],
    ['unknown tags', () => `a: [${'!x 1,'.repeat(49_000)}]`],
    ['aliases of a long list', () => `a: &a [${'1,'.repeat(90_000)}]\nb: [${'*a,'.repeat(900)}]`],
    ['a document that is parsed at once', () => `a: [${','.repeat(500)}]`],
  ])(
    'of %s',
    async (_, make) => {
      const text = make();
      await expectNobodyWaits(() => check(text, 'application/yaml'));
    },
    timeoutMs,
  );
});

describe('other clients do not wait while a client sends JSON', () => {
  it.each([
    ['2,000 tasks in a row', () => job({ tasks: many(2_000, (i) => (i === 0 ? task(0) : task(i, i - 1))) })],
    ['2,000 tasks behind a cycle', () => job({ tasks: many(2_000, (i) => task(i, Math.min(1_999, i + 1))) })],
    ['10,000 tasks', () => job({ tasks: many(10_000, (i) => task(i, Math.max(0, i - 1))) })],
    ['10,000 references', () => job({ tasks: many(100, (i) => task(i, ...many(100, (k) => (i + k) % 100))) })],
    [
      '100,000 values',
      () => job({ tasks: many(10, (i) => ({ name: `${i}`, function: { name: 'f', input: many(9_900, (n) => n) } })) }),
    ],
    ['100,000 faults', () => job({ tasks: [{ name: 'a', process: { command: many(99_000, (n) => n) } }] })],
    [
      'variables',
      () =>
        job({
          tasks: [
            { name: 'a', process: { command: ['x'], env: Object.fromEntries(many(20_000, (i) => [`K${i}`, 'v'])) } },
          ],
        }),
    ],
    [
      '1,000 schedules in all time zones',
      () =>
        job({
          triggers: many(1_000, (i) => ({ name: `t${i}`, start, cron: cron(i), timezone: zones[i % zones.length] })),
        }),
    ],
    [
      '1,000 zones that do not exist',
      () =>
        job({ triggers: many(1_000, (i) => ({ name: `t${i}`, start, cron: cron(i), timezone: `Europe/Berlix${i}` })) }),
    ],
    [
      'expressions that never fire',
      () => job({ triggers: many(1_000, (i) => ({ name: `t${i}`, start, cron: `${i % 60} ${i % 24} 30 2 *` })) }),
    ],
    [
      'a placeholder of blanks',
      () => job({ tasks: [{ name: 'a', process: { command: [`{{${' '.repeat(30_000)}`] } }] }),
    ],
    ['many placeholders', () => job({ tasks: [{ name: 'a', process: { command: ['{{ '.repeat(80_000)] } }] })],
  ])(
    'of %s',
    async (_, make) => {
      const text = make();
      await expectNobodyWaits(() => check(text, 'application/json'));
    },
    timeoutMs,
  );
});

describe('other clients do not wait while thirty connections send', () => {
  const zoned = (i: number) => ({ name: `t${i}`, start, cron: cron(i), timezone: zones[i % zones.length] });
  it.each([
    ['small YAML of open brackets', () => '['.repeat(4_090), 'application/yaml'],
    ['small YAML of repeated keys', () => 'a:\n'.repeat(1_360), 'application/yaml'],
    ['YAML that is parsed at once', () => '\n'.repeat(510), 'application/yaml'],
    [
      'JSON that is parsed at once',
      () => job({ triggers: many(20, (i) => ({ timezone: `a${i}` })) }),
      'application/json',
    ],
    ['small JSON of 1,500 tasks', () => job({ tasks: many(1_500, () => ({ name: 't' })) }), 'application/json'],
    ['a check of 100 triggers', () => job({ triggers: many(100, zoned) }), 'application/json'],
  ])(
    '%s',
    async (_, make, type) => {
      const text = make();
      const checkOnce = async (): Promise<void> => {
        const answer = await send('/api/jobs/check', text, type);
        expect(answer.status).toBe(200);
        await answer.text();
      };
      // as many as may wait
      await expectNobodyWaits(() => Promise.all(many(30, checkOnce)));
    },
    timeoutMs,
  );
});

it(
  'a small document of a tenant does not wait for the large ones that another tenant sends',
  async () => {
    await product.call('POST /api/tenants', { body: { name: 'other', database: 'other' } });
    const isStarted = async () => {
      const { state } = await product.call('GET /api/tenants/{name}', { params: { name: 'other' } });
      return state === 'STARTED' || undefined;
    };
    await until('the other tenant is started', isStarted);
    const large = many(49_000, (i) => `k${i}: 1`).join('\n');
    // more than are parsed at once, fewer than are refused
    let left = 6;
    const flood = many(left, () => check(large, 'application/yaml').finally(() => left--));
    const small = `project: p\nname: j\ndescription: ${'x'.repeat(5_000)}`;
    let parsed = 0;
    while (left > 1) {
      const answer = await send('/t/other/api/jobs?dry_run=true', small, 'application/yaml');
      // there is no such project: the document was parsed
      expect(answer.status).toBe(400);
      await answer.text();
      parsed++;
    }
    await Promise.all(flood);
    // at least one for each of the flood, so that none had to wait for two
    expect(parsed).toBeGreaterThanOrEqual(5);
  },
  timeoutMs,
);

describe('large params', () => {
  const params = { x: 'x'.repeat(262_000) };
  /** No worker takes its runs. */
  const waiting = { queue: 'nobody', process: { command: ['x', '{{params.x}}'.repeat(20_000)] } };

  it('other clients do not wait while large params are refused', async () => {
    const { id } = await product.call('POST /api/jobs', { body: job({ tasks: [{ name: 'a', ...waiting }] }) });
    const body = JSON.stringify({ params: { x: 'x'.repeat(900_000) } });
    await expectNobodyWaits(async () => {
      expect((await send(`/api/jobs/${id}/run`, body)).status).toBe(400);
    });
  });

  it('other clients do not wait while large params are expanded for a reader of the run', async () => {
    const { id } = await product.call('POST /api/jobs', { body: job({ tasks: [{ name: 'a', ...waiting }] }) });
    const { runs } = await product.call('POST /api/jobs/{id}/run', {
      params: { id },
      body: { params, priority: 'high' },
    });
    await expectNobodyWaits(() => product.call('GET /api/runs/{id}/environment', { params: { id: runs[0] ?? '' } }));
  });

  it.each([
    ['as a whole', '{{params.x}}'],
    ['and do not have', '{{params.none}}'],
  ])(
    'other clients do not wait while large params are expanded for 8,000 variables that name them %s',
    async (_, placeholder) => {
      const env = Object.fromEntries(many(8_000, (i) => [`K${i}`, placeholder]));
      const tasks = [{ name: 'a', queue: 'nobody', process: { command: ['x'], env } }];
      const { id } = await product.call('POST /api/jobs', { body: job({ tasks }) });
      const keys = Object.fromEntries(many(9_000, (i) => [`p${i}`, i]));
      const { runs } = await product.call('POST /api/jobs/{id}/run', {
        params: { id },
        body: { params: placeholder === '{{params.x}}' ? { x: keys } : keys },
      });
      await expectNobodyWaits(() => product.call('GET /api/runs/{id}/environment', { params: { id: runs[0] ?? '' } }));
    },
    timeoutMs,
  );

  it(
    'other clients do not wait while 60 runs with large params are claimed',
    async () => {
      const tasks = many(60, (i) => ({ name: `t${i}` }));
      const { id } = await product.call('POST /api/jobs', { body: job({ name: 'claimed', tasks }) });
      await expectNobodyWaits(async () => {
        const { runs } = await product.call('POST /api/jobs/{id}/run', {
          params: { id },
          body: { params, priority: 'high' },
        });
        expect(runs).toHaveLength(60);
        for (const run of [runs[0], runs[59]]) {
          for (;;) {
            const { state } = await product.call('GET /api/runs/{id}', { params: { id: run ?? '' } });
            if (state === 'success') break;
            expect(['queued', 'running', 'active']).toContain(state);
            await pause(100);
          }
        }
      });
    },
    timeoutMs,
  );
});
