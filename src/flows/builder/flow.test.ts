import { describe, expect, it } from 'vitest';
import { parseFlow } from '../language/parse-flow.ts';
import { testFlow } from '../testing/test-flow.ts';
import { flow } from './flow.ts';
import { x } from './paths.ts';
import { participant, s } from './steps.ts';

interface Order {
  readonly order: {
    readonly id: string;
    readonly items: readonly string[];
    readonly total: number;
    readonly card: string;
  };
  readonly reservation: { readonly id: string };
  readonly payment: { readonly id: string };
}

const reserve = participant<{ items: readonly string[] }, { id: string }>('reserve-stock');
const release = participant<{ id: string }, null>('release-stock');
const charge = participant<{ amount: number; card: string }, { id: string }>('charge');
const ship = participant<{ order: string }, null>('ship', {
  process: { command: ['ship', '--order', '$(f.order.id)'] },
});
const tell = participant<{ why: string }, null>('tell-customer');

const order = flow<Order>(
  'order',
  ({ f }) => [
    s
      .task(reserve, { items: f.order.items })
      .result(f.reservation)
      .undo([s.task(release, { id: f.reservation.id })]),
    s
      .task(charge, { amount: f.order.total, card: f.order.card })
      .retry({ max_attempts: 5, delay: '2s', on: ['timeout', 'error'] })
      .result(f.payment),
    s.if(x<boolean>`${f.order.total} > 1000`, [s.wait({ on: { signal: 'released' }, for: '1d' })]),
    s.task(ship, { order: f.order.id }).timeout('2h'),
  ],
  {
    labels: { order: x`input.order.id` },
    onError: ({ err }) => [s.task(tell, { why: err.code }), s.fail(err)],
  },
);

describe('flow()', () => {
  it('The product is the JSON of a document.', () => {
    expect(order).toEqual({
      flow: 'order',
      labels: { order: '$(input.order.id)' },
      steps: [
        {
          task: 'reserve-stock',
          with: { items: '$(f.order.items)' },
          result: 'f.reservation',
          undo: [{ task: 'release-stock', with: { id: '$(f.reservation.id)' } }],
        },
        {
          task: 'charge',
          with: { amount: '$(f.order.total)', card: '$(f.order.card)' },
          retry: { max_attempts: 5, delay: '2s', on: ['timeout', 'error'] },
          result: 'f.payment',
        },
        { if: '$(f.order.total > 1000)', then: [{ wait: { on: { signal: 'released' }, for: '1d' } }] },
        {
          task: 'ship',
          process: { command: ['ship', '--order', '$(f.order.id)'] },
          with: { order: '$(f.order.id)' },
          timeout: '2h',
        },
      ],
      on_error: [{ do: [{ task: 'tell-customer', with: { why: '$(err.code)' } }, { fail: '$(err)' }] }],
    });
    expect(parseFlow(order)).toMatchObject({ ok: true, warnings: [] });
  });

  it('A flow that was built runs as one that was written.', async () => {
    const t = await testFlow(order, {
      input: { order: { id: 'o', items: [], total: 2_000, card: 'c' } },
      tasks: { 'reserve-stock': () => ({ id: 'r' }), charge: () => ({ id: 'p' }), ship: () => null },
    });
    expect(t.status).toBe('waiting');
    await t.signal('released');
    expect([t.status, t.fields['payment']]).toEqual(['done', { id: 'p' }]);
  });

  it('Every verb and attribute is in the builder, and is valid.', () => {
    interface Fields {
      readonly list: readonly { readonly n: number }[];
      readonly n: number;
      readonly a: { readonly 'b c': string };
    }
    const all = flow<Fields>('all', ({ f, err }) => [
      s
        .sequence([s.set(f.n, x<number>`${f.n} + ${1}`)])
        .tag('first')
        .vars({ a: 1 }),
      s.parallel([s.wait('1s'), s.wait('2s')], { expect: 1, rest: 'wait', merge: 'last' }),
      s.switch(f.a['b c'], { one: [s.cancel('first', { kill: true })] }, [
        s.fail({ code: 'none', message: f.a['b c'] }),
      ]),
      s.loop([s.break()], { while: x<boolean>`${f.n} < 3`, every: '1s', max: 5 }).tag('rounds'),
      s.each(f.list, ({ it, index }) => [s.set(f.n, x<number>`${it.n} + ${index}`), s.continue()], { concurrent: 2 }),
      s.on<{ why: string }>({ signal: 'stop' }, ({ event }) => [s.signal('told', { payload: event.payload.why })], {
        count: 1,
      }),
      s.call('other', { n: f.n }).result(f.n).when(x<boolean>`has(${f.n})`).background(),
      s
        .task(participant('anything'))
        .onError(() => [s.fail(err)], ['a', 'b'])
        .onCancel([s.set(f.n, 0)]),
      s.task(participant('slow')).timeout('1h', [s.set(f.n, 1)]),
    ]);
    const parsed = parseFlow(all);
    expect(parsed).toMatchObject({ ok: true });
    expect(JSON.stringify(all)).toContain('$(f.a[\\"b c\\"])');
  });

  it('The compiler rejects an input of another type.', () => {
    flow<Order>('wrong', ({ f }) => [
      // @ts-expect-error: an amount is a number
      s.task(charge, { amount: 'much', card: f.order.card }),
      // @ts-expect-error: the card is missing
      s.task(charge, { amount: 1 }),
    ]);
  });
});
