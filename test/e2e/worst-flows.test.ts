/**
 * The worst that clients can do with flows: documents, expressions, inputs, signals, and executions without end. While each is
 * handled, no other client waits for more than 200 ms, and executions of another tenant start and end as before. No answer is 500 or
 * more, and the memory of the process stays bounded. A new kind is a line in a table.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Attacker } from '../harness/flows/attacker.ts';
import { attacks } from '../harness/flows/attacks.ts';
import { measureBlocking } from '../harness/blocking.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const longestWaitMs = 200;
/** Of an execution of another tenant, from the request to its commit. */
const longestLaunchMs = 1_000;
const maxMemory = 1_200_000_000;

let product: Product;
let by: Attacker;
beforeAll(async () => {
  product = await startProduct({ args: ['--no-worker'] });
  by = new Attacker(product);
  await product.call('POST /api/tenants', { body: { name: 'other' } });
  await until('the other tenant runs', async () => {
    const { state } = await product.call('GET /api/tenants/{name}', { params: { name: 'other' } });
    return state === 'STARTED' || undefined;
  });
  await by.apply({ flow: 'quick', steps: [{ set: { ret: '$(input)' } }] }, '/t/other');
  await until('it executes flows', async () => {
    const { status } = await by.send('POST', '/t/other/api/executions', { flow: 'quick', input: 1 });
    return status === 201 || undefined;
  });
}, 60_000);
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** Executions of the other tenant, one after the other, until `stop`, which returns the longest time of one. */
function watchOtherTenant(): { stop(): Promise<number> } {
  let isOver = false;
  let longestMs = 0;
  const watching = (async () => {
    while (!isOver) {
      const startedAt = performance.now();
      const { status } = await by.send('POST', '/t/other/api/executions', { flow: 'quick', input: 1 });
      expect(status).toBe(201);
      longestMs = Math.max(longestMs, performance.now() - startedAt);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await watching;
      return longestMs;
    },
  };
}

async function peakMemory(): Promise<number> {
  const status = await readFile(`/proc/${product.child.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}

async function expectNobodyNotices(attack: () => Promise<void>): Promise<void> {
  const watched = { url: product.url, pid: product.child.pid ?? 0 };
  const launches: number[] = [];
  const work = async (): Promise<void> => {
    const other = watchOtherTenant();
    try {
      await attack();
    } finally {
      launches.push(await other.stop());
    }
  };
  const waitMs = await measureBlocking(watched, work, longestWaitMs);
  const figures = {
    waitMs: Math.round(waitMs),
    launchMs: Math.round(Math.min(...launches)),
    memory: await peakMemory(),
  };
  if (process.env['MILLRACE_SHOW'] !== undefined) console.log(expect.getState().currentTestName, figures);
  expect(waitMs).toBeLessThanOrEqual(longestWaitMs);
  expect(figures.launchMs).toBeLessThanOrEqual(longestLaunchMs);
  expect(figures.memory).toBeLessThan(maxMemory);
}

const documents: Readonly<Record<string, () => object>> = {
  '5,000 steps': () => ({ steps: many(4_998, (i) => ({ set: { 'f.x': `$(f.n + ${i})` } })) }),
  'a megabyte of expressions': () => ({ steps: many(900, () => ({ set: { 'f.x': `$([${'f.n,'.repeat(270)}1])` } })) }),
  'expressions within expressions': () => ({ steps: many(900, () => ({ set: { 'f.x': `$(${'('.repeat(500)}` } })) }),
  'steps within steps': () => ({ steps: [many(900, () => 0).reduce<unknown>((step) => ({ sequence: [step] }), 0)] }),
  '20,000 labels': () => ({ steps: [], labels: Object.fromEntries(many(20_000, (i) => [`l${i}`, '$(input)'])) }),
  'a form of 20,000 choices': () => ({ steps: [{ task: 't', human: { form: { a: many(20_000, (i) => i) } } }] }),
  '1,600 schedules': () => ({ steps: many(1_600, (i) => ({ on: { cron: `${i % 60} ${i % 24} 30 2 *` }, do: [] })) }),
  'faults in 5,000 steps': () => ({ steps: many(4_998, () => ({ set: { 'f.x': '$(nothing(none))' } })) }),
  'names of the host': () =>
    JSON.parse('{"__proto__":{"flow":"a"},"constructor":1,"steps":[{"__proto__":1}]}') as object,
};

describe('nobody notices that', () => {
  it.each(Object.keys(documents))('a document has %s', { timeout: 120_000 }, async (what) => {
    const text = JSON.stringify({ flow: 'document', ...documents[what]?.() });
    await expectNobodyNotices(async () => {
      await Promise.all(many(4, () => by.send('POST', '/api/flows?dry_run=true', text)));
    });
  });

  it.each(attacks)('$what', { timeout: 120_000 }, ({ work }) => expectNobodyNotices(() => work(by)));

  it('waits have impossible times', { timeout: 120_000 }, async () => {
    const times = ['$(-5)', '$(1e15)', '999999999d', '$("never")', '$(1e308)', '-1h', '$([1])', 'P1000000Y'];
    const moments = ['$("9999-12-31T23:59:59Z")', '$("-000001-01-01T00:00:00Z")', '$(1e18)', '$(timestamp(-1e12))'];
    await expectNobodyNotices(async () => {
      for (const wait of [...times, ...moments.map((moment) => ({ until: moment }))]) {
        if ((await by.apply({ flow: 'time', steps: [{ wait }] })) >= 300) continue;
        const id = await by.launch('time');
        expect(['waiting', 'incident', 'done']).toContain((await by.read(id)).status);
        await by.kill(id);
      }
    });
  });

  it('searches have hostile filters', async () => {
    const hostile = [
      '%',
      "' or 1=1 --",
      'a:%',
      ':',
      'a:'.repeat(600),
      '\u0000',
      '%00',
      '😀',
      '__proto__:x',
      '-1',
      'NaN',
    ];
    await expectNobodyNotices(async () => {
      for (const text of hostile)
        for (const name of ['flow', 'label', 'key', 'cursor', 'status', 'limit', 'created_after', 'parent', 'version'])
          await by.send('GET', `/api/executions?${name}=${encodeURIComponent(text)}`);
    });
  });

  it('links are forged', async () => {
    const { status } = await by.send('GET', '/api/me');
    expect(status).toBe(200);
    await expectNobodyNotices(async () => {
      const tokens = ['x', 'a.b', 'e30.e30', '.e30', `${'a'.repeat(5_000)}.b`, '%00', 'null.null', '[].AAAA'];
      for (const token of tokens) {
        const answers = await Promise.all([
          by.send('GET', `/answers/${encodeURIComponent(token)}`),
          by.send('POST', `/answers/${encodeURIComponent(token)}`, 'x'.repeat(200_000)),
        ]);
        for (const answer of answers) expect([400, 404, 414]).toContain(answer.status);
      }
    });
  });

  // the last one: its executions start each other
  it('a flow launches itself, twice each time', { timeout: 120_000 }, async () => {
    await by.apply({ flow: 'again', steps: many(2, () => ({ call: 'again', mode: 'detached' })) });
    await expectNobodyNotices(async () => {
      await by.launch('again');
      await until('it has launched itself often', async () => {
        const { text } = await by.send('GET', '/api/executions?flow=again&limit=1000');
        return (JSON.parse(text) as { items: unknown[] }).items.length >= 900 || undefined;
      });
    });
    await by.send('DELETE', '/api/flows/again');
  });
});

it('Nothing of a sealed field is shown, whatever becomes of its execution', { timeout: 60_000 }, async () => {
  const secret = 'sealed "4929" card';
  const steps = [
    { wait: { on: { signal: 'go' } } },
    // these commits do not hold the field itself
    { set: { 'f.copy': '$("the card is " + f.card)', 'f.json': '$(string([f.card]))' } },
    { set: { 'f.x': '$(timestamp(f.card))' } },
  ];
  expect(await by.apply({ flow: 'sealed', sealed: ['f.card'], steps })).toBeLessThan(300);
  const id = await by.launch('sealed', { card: secret });
  await by.send('POST', `/api/executions/${id}/signals`, { name: 'go' });
  await until('it has an incident', async () => (await by.read(id)).status === 'incident' || undefined);
  const paths = ['', '/history', '/history?after=1', '/document', '?rev=1'].map(
    (path) => `/api/executions/${id}${path}`,
  );
  const more = [`/api/explain/execution/${id}`, '/api/executions', '/api/audit', '/api/activity'];
  for (const path of [...paths, ...more]) {
    const { status, text } = await by.send('GET', path);
    expect([path, status, text]).toEqual([path, 200, expect.not.stringContaining('4929') as unknown]);
  }
  expect(product.output()).not.toContain('4929');
  await by.kill(id);
});

it('The process has logged no fault of its own.', () => {
  expect(product.output()).not.toMatch(/request failed|internal|unhandled/i);
});
