import { describe, expect, it } from 'vitest';
import { FlowWorld } from '../../../test/harness/flows/world.ts';
import type { Json } from '../json.ts';
import { flowLimits } from './run.ts';

function launched(steps: Json): FlowWorld {
  const world = new FlowWorld({ flow: 'f', steps });
  world.send({ point: 'launch', input: {} });
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
