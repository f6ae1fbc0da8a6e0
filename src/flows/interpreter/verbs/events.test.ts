import { describe, expect, it } from 'vitest';
import type { Json } from '../../json.ts';
import { testFlow, type TestFlowOptions } from '../../testing/test-flow.ts';

function start(steps: unknown, options: TestFlowOptions = {}) {
  return testFlow({ flow: 'f', steps }, options);
}

describe('time and events', () => {
  it('A signal that comes early is kept for the step that waits for it.', async () => {
    const t = await start([
      { task: 'first' },
      { wait: { on: { signal: 'go', match: 'event.payload.n > 1' } }, result: 'f.r' },
    ]);
    await t.signal('go', { n: 1 });
    await t.signal('go', { n: 2 });
    await t.signal('go', { n: 3 });
    await t.answer('first');
    expect([t.status, t.fields]).toEqual(['done', { r: { n: 2 } }]);
  });

  it('The first of several events ends a wait, or its time.', async () => {
    const flow = [{ wait: { on: [{ signal: 'a' }, { signal: 'b' }], for: '1h' }, result: 'f.r' }];
    const heard = await start(flow);
    await heard.signal('b', 2);
    expect([heard.status, heard.fields]).toEqual(['done', { r: 2 }]);
    const late = await start(flow);
    await late.skip('1h');
    expect([late.status, late.fields]).toEqual(['done', { r: null }]);
  });

  it('Two waits never take the same signal.', async () => {
    const one = { wait: { on: { signal: 'go' } } };
    const t = await start([{ parallel: [one, one], result: 'f.r' }]);
    await t.signal('go', 1);
    expect(t.status).toBe('waiting');
    await t.signal('go', 2);
    expect(t.fields).toEqual({ r: [1, 2] });
  });

  it('on handles events one after the other, or at the same time, and ends after its count.', async () => {
    const listener = { on: { signal: 'go' }, do: [{ task: 'work', with: '$(event.payload)' }], count: 3 };
    const queue = await start([listener, { task: 'main' }]);
    for (const n of [1, 2, 3, 4]) await queue.signal('go', n);
    expect(queue.calls.filter(({ task }) => task === 'work').map(({ input }) => input)).toEqual([1]);
    for (let i = 0; i < 3; i++) await queue.answer('work');
    expect(queue.calls.filter(({ task }) => task === 'work').map(({ input }) => input)).toEqual([1, 2, 3]);
    const parallel = await start([{ ...listener, mode: 'parallel' }, { task: 'main' }]);
    for (const n of [1, 2, 3, 4]) await parallel.signal('go', n);
    expect(parallel.calls.filter(({ task }) => task === 'work')).toHaveLength(3);
    expect(parallel.state.early).toMatchObject([{ payload: 4 }]);
  });

  it('Steps hear that others were entered and left.', async () => {
    const t = await start([
      { on: { entered: 'b' }, do: [{ set: { 'f.entered': true } }] },
      { on: { left: 'a' }, do: [{ set: { 'f.left': true } }] },
      { task: 'a', tag: 'a' },
      { task: 'b', tag: 'b' },
    ]);
    await t.answer('a');
    expect(t.fields).toEqual({ left: true, entered: true });
  });

  it.each([
    ['skip', ['2026-01-01T05:00:00.000Z']],
    ['one', ['2026-01-01T04:00:00.000Z', '2026-01-01T05:00:00.000Z']],
    ['all', ['01', '02', '03', '04', '05'].map((hour) => `2026-01-01T${hour}:00:00.000Z`)],
  ])('Times that passed while the execution was paused: %s', async (missed, expected) => {
    const heard: Json[] = [];
    const note = (input: Json): null => {
      heard.push(input);
      return null;
    };
    const t = await start(
      [{ on: { every: '1h', missed }, do: [{ task: 'note', with: '$(event.planned_at)' }] }, { task: 'main' }],
      {
        tasks: { note },
      },
    );
    await t.operate({ action: 'pause' });
    await t.skip('5h');
    await t.operate({ action: 'resume' });
    await t.skip('1s');
    expect(heard).toEqual(expected);
  });

  it.each(['abc', '0198c2d1', 'the first order'])('A signal to %j, which is no id, fails its step.', async (to) => {
    const t = await start([{ signal: 'go', to: '$(f.to)' }], { input: { to } });
    expect([t.open[0]?.error?.code, t.signals]).toEqual(['expression_error', []]);
  });

  it('A computed time of more than a thousand years fails its step.', async () => {
    const t = await start([{ wait: { for: '$(f.seconds)' } }], { input: { seconds: 1e300 } });
    expect(t.open[0]?.error).toMatchObject({ code: 'expression_error' });
  });

  it('A signal goes to another execution, or to this one.', async () => {
    const other = '00000000-0000-7000-8000-000000000002';
    const t = await start([
      { on: { signal: 'self' }, do: [{ set: { 'f.heard': '$(event.payload)' } }] },
      { signal: 'self', payload: 1 },
      { signal: 'other', to: other, payload: { n: 2 } },
      { task: 'end' },
    ]);
    expect(t.fields).toEqual({ heard: 1 });
    expect(t.signals).toMatchObject([{ to: other, name: 'other', payload: { n: 2 } }]);
  });
});
