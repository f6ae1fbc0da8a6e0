import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readDocument } from '../../documents/text.ts';
import type { Json } from '../json.ts';
import { testFlow, type TestFlowOptions } from './test-flow.ts';

function example(name: string, options: TestFlowOptions) {
  const read = readDocument(readFileSync(`examples/flows/${name}.yaml`, 'utf8'), 'yaml');
  if (!read.ok) throw new Error(JSON.stringify(read.faults));
  return testFlow(read.value, options);
}

function failing(code: string): () => never {
  return () => {
    throw Object.assign(new Error(`${code} happened`), { code });
  };
}

describe('the order', () => {
  const order = { order: { id: 'o1', items: ['a'], total: 5, card: 'c', email: 'e', customer: 'ann' } };
  const tasks = {
    'reserve-stock': () => ({ id: 'r1' }),
    'release-stock': () => null,
    charge: () => ({ id: 'p1' }),
    refund: () => null,
    'tell-customer': () => null,
    ship: () => null,
    confirm: () => null,
  };
  const names = (test: { calls: readonly { task: string }[] }): string[] => test.calls.map(({ task }) => task);

  it('An order that succeeds undoes nothing.', async () => {
    const t = await example('order', { input: order, tasks });
    expect(t.status).toBe('done');
    expect(names(t)).toEqual(['reserve-stock', 'charge', 'ship', 'confirm']);
    expect(t.fields).toMatchObject({ reservation: { id: 'r1' }, payment: { id: 'p1' } });
  });

  it('A failed shipment undoes payment and reservation, the last first, and tells the customer.', async () => {
    const t = await example('order', { input: order, tasks: { ...tasks, ship: failing('no_carrier') } });
    expect(names(t)).toEqual(['reserve-stock', 'charge', 'ship', 'refund', 'release-stock', 'tell-customer']);
    expect(t.status).toBe('failed');
    expect(t.error).toMatchObject({ code: 'no_carrier' });
    expect(t.calls.find(({ task }) => task === 'refund')?.input).toEqual({ payment: 'p1' });
  });

  it('A charge is tried five times, with pauses that double.', async () => {
    const times: number[] = [];
    const charge = (_: unknown, { nowMs }: { nowMs: number }): never => {
      times.push(nowMs);
      throw new Error('declined');
    };
    const t = await example('order', { input: order, tasks: { ...tasks, charge } });
    await t.skip('1h');
    expect(times.map((time) => (time - (times[0] ?? 0)) / 1_000)).toEqual([0, 2, 6, 14, 30]);
    expect(t.status).toBe('failed');
  });

  it('A shipment that takes more than two hours times out.', async () => {
    const { ship: _, ...others } = tasks;
    const t = await example('order', { input: order, tasks: others });
    expect(t.open).toMatchObject([{ task: 'ship' }]);
    await t.skip('2h');
    expect(t.error).toMatchObject({ code: 'timeout' });
    expect(names(t)).toContain('refund');
  });
});

describe('the expense', () => {
  const input = { id: 'e1', amount: 12, manager: 'meg', employee: 'eve' };
  const tasks = { remind: () => null, pay: () => null, tell: () => null };

  it('A decision pays, and ends the reminders.', async () => {
    const t = await example('expense', { input, tasks });
    await t.skip('5d');
    expect(t.calls.filter(({ task }) => task === 'remind')).toHaveLength(2);
    expect(JSON.stringify(t.calls.at(-1)?.input)).toMatch(/^{"to":"meg","link":"https:\/\/millrace.test\/answers\//);
    await t.answer('approve', { approved: true, comment: '' });
    expect(t.status).toBe('done');
    expect(t.calls.at(-1)).toEqual({ task: 'pay', input: { amount: 12 } });
    await t.skip('30d');
    expect(t.calls.filter(({ task }) => task === 'remind')).toHaveLength(2);
  });

  it('Nobody decides: the finance leads are asked, and their answer counts.', async () => {
    const t = await example('expense', { input, tasks });
    await t.skip('8d');
    expect(t.open).toMatchObject([{ task: 'approve' }]);
    await t.answer('approve', { approved: false, comment: 'too late' });
    expect(t.calls.at(-1)).toEqual({ task: 'tell', input: { to: 'eve', why: 'too late' } });
    expect(t.status).toBe('done');
  });
});

describe('the thumbnails', () => {
  it('Ten are made at a time, and a failed one is marked.', async () => {
    let running = 0;
    let most = 0;
    const images = Array.from({ length: 25 }, (_, i) => ({ url: `u${i}` }));
    const thumbnail = async ({ url }: { url: string }): Promise<Json> => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      if (url === 'u7') throw new Error('broken');
      return { url, ok: true };
    };
    const t = await example('thumbnails', {
      input: { images },
      tasks: { thumbnail, 'publish-index': () => null },
    });
    await t.skip('1m');
    expect(t.status).toBe('done');
    const thumbnails = t.fields['thumbnails'] as { url: string; failed?: string }[];
    expect(thumbnails.map(({ url }) => url)).toEqual(images.map(({ url }) => url));
    expect(thumbnails[7]).toEqual({ url: 'u7', failed: 'error' });
    const { input: index } = t.calls.at(-1) ?? {};
    expect((index as { pages: unknown[] }).pages).toHaveLength(24);
    expect(Object.keys(t.state.store)).toEqual([]);
  });
});

describe('the export', () => {
  it('The status is asked every 30 seconds until it is done.', async () => {
    let asked = 0;
    const t = await example('export', {
      tasks: {
        'start-export': () => ({ id: 'j' }),
        'export-status': () => ({ state: ++asked < 4 ? 'running' : 'done' }),
      },
    });
    await t.skip('89s');
    expect([asked, t.status]).toEqual([3, 'waiting']);
    await t.skip('1s');
    expect([asked, t.status]).toEqual([4, 'done']);
  });

  it('A failed export fails the execution, and one that hangs times out after six hours.', async () => {
    const failed = await example('export', {
      tasks: { 'start-export': () => ({ id: 'j' }), 'export-status': () => ({ state: 'failed', reason: 'disk' }) },
    });
    expect(failed.error).toMatchObject({ code: 'export_failed', message: 'disk' });
    const hanging = await example('export', {
      tasks: { 'start-export': () => ({ id: 'j' }), 'export-status': () => ({ state: 'running' }) },
    });
    await hanging.skip('7h');
    expect(hanging.error).toMatchObject({ code: 'timeout' });
    expect(hanging.calls).toHaveLength(1 + 720);
  });
});

describe('the morning digest', () => {
  it('Each working day at nine has its digest, for a year, until it is stopped.', async () => {
    const times: string[] = [];
    const t = await example('morning-digest', {
      now: new Date('2026-01-01T00:00:00Z'),
      tasks: {
        collect: ({ since }: { since: string }) => {
          times.push(since);
          return times.length % 2 === 0 ? [] : ['story'];
        },
        'send-digest': () => null,
      },
    });
    await t.skip('365d');
    expect(times).toHaveLength(261);
    // summer time
    expect([times[0], times[150]]).toEqual(['2026-01-01T08:00:00.000Z', '2026-07-30T07:00:00.000Z']);
    expect(t.calls.filter(({ task }) => task === 'send-digest')).toHaveLength(131);
    await t.signal('stop');
    expect(t.status).toBe('done');
    t.crash();
    expect(t.status).toBe('done');
  });
});
