import { describe, expect, it } from 'vitest';
import { FlowWorld } from '../../../test/harness/flows/world.ts';
import type { Json } from '../json.ts';
import { flowLimits } from './run.ts';

function launched(steps: Json, input: Json = {}): FlowWorld {
  const world = new FlowWorld({ flow: 'f', steps });
  world.send({ point: 'launch', input });
  return world;
}

const go = (payload: Json): { readonly point: 'signal'; readonly name: string; readonly payload: Json } => {
  return { point: 'signal', name: 'go', payload };
};

describe('signals without end', () => {
  it('A signal that nothing waits for is refused, and changes nothing, once too many are kept.', () => {
    const world = launched([
      { task: 'first' },
      { wait: { on: { signal: 'go' } }, result: 'f.first' },
      { task: 'last' },
    ]);
    for (let n = 0; n < flowLimits.earlySignals; n++) expect(world.send(go(n)).refused).toBeNull();
    const before = world.state;
    expect(world.send(go('one too many')).refused).toMatchObject({ code: 'too_many_signals' });
    expect(world.state).toBe(before);
    world.answer(0);
    expect([world.state.f, world.state.early.length]).toEqual([{ first: 0 }, flowLimits.earlySignals - 1]);
    expect(world.send(go('there is room again')).refused).toBeNull();
    expect(world.folded).toEqual(world.state);
  });

  it('Payloads of signals that nothing waits for are bounded together.', () => {
    const world = launched([{ task: 'first' }]);
    const payload = 'x'.repeat(1024 * 1024);
    const codes = Array.from({ length: 5 }, () => world.send(go(payload)).refused?.code);
    expect(codes).toEqual([undefined, undefined, undefined, 'too_many_signals', 'too_many_signals']);
  });

  it('A commit stores the signal that came, and not those that came before.', () => {
    const world = launched([{ task: 'first' }]);
    for (let n = 0; n < 500; n++) world.send(go(n));
    const sizes = world.deltas.map((delta) => JSON.stringify(delta).length);
    expect(Math.max(...sizes.slice(1))).toBeLessThan(500);
  });

  it('A paused execution refuses signals once too many wait, and takes every answer.', () => {
    const world = launched([{ on: { signal: 'go' }, do: [{ set: { 'f.n': '$(event.payload)' } }] }, { task: 'first' }]);
    world.send({ point: 'operate', operation: { action: 'pause' } });
    for (let n = 0; n < flowLimits.heldMessages; n++) world.send(go(n));
    expect(world.send(go('one too many')).refused).toMatchObject({ code: 'too_many_signals' });
    expect(world.answer(0)).toBe(true);
    world.send({ point: 'operate', operation: { action: 'resume' } });
    expect([world.isOver, world.folded]).toEqual([true, world.state]);
  });

  it('A handler with a full queue takes the signals that were kept meanwhile, in order.', () => {
    const world = launched([
      { on: { signal: 'go' }, do: [{ task: 'work', with: '$(event.payload)' }] },
      { wait: { on: { signal: 'end' } } },
    ]);
    const count = flowLimits.queuedEvents + 200;
    for (let n = 0; n < count; n++) expect(world.send(go(n)).refused).toBeNull();
    expect(world.state.early.length).toBeGreaterThan(0);
    for (let n = 0; n < count; n++) world.answer(0);
    expect(world.tasks.map(({ input }) => input)).toEqual(Array.from({ length: count }, (_, n) => n));
    expect(world.state.early).toEqual([]);
  });

  it('A refused signal may be sent again under the same id.', () => {
    const world = launched([{ task: 'first' }]);
    world.send({ point: 'operate', operation: { action: 'pause' } });
    expect(world.send({ point: 'operate', operation: { action: 'pause' } }).refused).toMatchObject({ code: 'paused' });
    expect(world.state.seen).toHaveLength(1);
  });
});

describe('much at once', () => {
  const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const numbers = many(5_000, (i) => i);
  const incidents = (world: FlowWorld) => Object.values(world.state.nodes).flatMap(({ error }) => error?.code ?? []);
  const largest = (world: FlowWorld) => Math.max(...world.deltas.map((delta) => JSON.stringify(delta).length));

  it('Expressions of one step share a limit.', () => {
    const costly = '$(input.numbers.filter(x, x * x + x * 2 < 7).size())';
    const one = launched([{ set: { 'f.a': costly } }], { numbers });
    expect([one.isOver, incidents(one)]).toEqual([true, []]);
    const all = launched([{ set: Object.fromEntries(many(500, (i) => [`f.k${i}`, costly])) }], { numbers });
    expect(incidents(all)).toEqual(['expression_too_long']);
  });

  it('The work of all who listen for a signal is bounded.', () => {
    const match = 'input.numbers.exists(x, x == -1)';
    const listening = many(500, () => ({ on: { signal: 'go', match }, do: [{ task: 'never' }] }));
    const world = launched([...listening, { wait: { on: { signal: 'end' } } }], { numbers });
    const before = process.cpuUsage();
    expect(world.send(go(1)).refused).toBeNull();
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
    world.send({ point: 'signal', name: 'end', payload: null });
    expect(world.isOver).toBe(true);
  });

  it('Thousands of branches begin as fast as few.', () => {
    const branches = many(4_900, () => ({ task: 'work' }));
    const world = new FlowWorld({ flow: 'f', steps: [{ parallel: branches }] });
    const before = process.cpuUsage();
    // when each asked for all, this took seconds
    world.send({ point: 'launch', input: {} });
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
    expect(world.tasks).toHaveLength(4_900);
  });

  it('A commit stores the compensation that was added, and not those before it.', () => {
    const undone = { set: { 'f.n': '$(it)' }, undo: [{ task: 'undo', with: '$(f)' }] };
    const world = launched([{ each: 'input.items', do: [undone] }, { fail: 'all' }], {
      items: many(300, (i) => i),
      large: 'x'.repeat(10_000),
    });
    // 200 inner messages are about 60 items
    expect(largest(world)).toBeLessThan(2_000_000);
    for (let n = 299; n >= 0; n--) {
      expect(world.tasks.at(-1)?.input).toMatchObject({ n });
      world.answer(0);
    }
    expect([world.isOver, world.state.store, world.folded]).toEqual([true, {}, world.state]);
  });

  it('A run that has added much is committed before it goes on.', () => {
    const copies = many(30, (i) => ({ set: { [`f.k${i}`]: '$(f.large)' } }));
    const world = launched(copies, { large: 'x'.repeat(1_000_000) });
    expect([world.isOver, Object.keys(world.state.f).length]).toEqual([true, 31]);
    expect(largest(world)).toBeLessThan(6_000_000);
  });

  it('A value that is nested deeper and deeper ends in an error.', () => {
    const world = launched([{ loop: [{ set: { 'f.n': '$([f.n])' } }] }], { n: 0 });
    expect(incidents(world)).toEqual(['too_large']);
  });

  it('A computed time is at most a thousand years away.', () => {
    const waits = ['$(1e15)', '$(1e308)', '$(-1)', '$(duration("9000000h"))'].map((wait) => launched([{ wait }]));
    expect(waits.map(incidents)).toEqual(waits.map(() => ['expression_error']));
    expect(launched([{ wait: '$(3e10)' }]).timers).toHaveLength(1);
  });
});
