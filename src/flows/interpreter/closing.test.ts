/** Cancelling, killing and leaving: what ends, in which order, and that nothing else begins. */
import { describe, expect, it } from 'vitest';
import { FlowWorld } from '../../../test/harness/flows/world.ts';
import type { Json } from '../json.ts';
import type { Operation } from './state.ts';

function launched(steps: Json, more: Readonly<Record<string, Json>> = {}, how: { maxMessages?: number } = {}) {
  const world = new FlowWorld({ flow: 'f', steps, ...more }, how);
  world.send({ point: 'launch', input: {} });
  return world;
}

function operate(world: FlowWorld, operation: Operation): void {
  world.send({ point: 'operate', operation });
}

const cancelAll = { action: 'cancel', nid: null } as const;
const killAll = { action: 'kill', nid: null } as const;
const calledBy = (world: FlowWorld): string[] => world.tasks.map(({ name }) => name);

describe('cancelling', () => {
  it.each([1, 200])(
    'A step that cancels the steps around it begins none of those after it (%i messages)',
    (maxMessages) => {
      const inner = { sequence: [{ cancel: 'x' }, { set: { 'f.wrong': 1 } }, { task: 'wrong' }] };
      const steps = [{ sequence: [{ sequence: [inner] }, { set: { 'f.wrong': 2 } }], tag: 'x' }, { task: 'after' }];
      const world = launched(steps, {}, { maxMessages });
      expect([world.state.f, calledBy(world)]).toEqual([{}, ['after']]);
    },
  );

  it('A step that is cancelled while it compensates a failure does not time out any more.', () => {
    const steps = [
      {
        sequence: [{ task: 'a', undo: [{ task: 'undo a' }] }, { task: 'b' }],
        timeout: '1h',
        retry: { max_attempts: 2 },
        on_timeout: [{ task: 'wrong' }],
      },
    ];
    const world = launched(steps);
    world.answer(0);
    world.answer(0, true);
    operate(world, cancelAll);
    for (let i = 0; i < 5; i++) world.fireNext();
    world.answer(0);
    expect([world.state.ending, calledBy(world)]).toEqual([{ kind: 'cancelled' }, ['a', 'b', 'undo a']]);
  });

  it('A step that has not begun when it is cancelled during a pause has nothing to clean up.', () => {
    const steps = [{ sequence: [{ task: 'a', on_cancel: [{ task: 'wrong' }] }] }];
    const world = new FlowWorld({ flow: 'f', steps }, { maxMessages: 1, isStepwise: true });
    world.send({ point: 'launch', input: {} });
    operate(world, { action: 'pause' });
    world.send({ point: 'continue' });
    expect(world.state.isPaused).toBe(true);
    const nid = Object.keys(world.state.nodes).find((key) => key.startsWith('0_0_0')) ?? '';
    operate(world, { action: 'cancel', nid });
    operate(world, { action: 'resume' });
    for (let i = 0; i < 20; i++) world.send({ point: 'continue' });
    expect([world.state.ending, calledBy(world)]).toEqual([{ kind: 'done' }, []]);
  });
});

describe('a paused execution', () => {
  const steps = [{ sequence: [{ task: 'a' }, { task: 'wrong' }], on_cancel: [{ set: { 'f.cleaned': true } }] }];

  it('Kill ends it at once.', () => {
    const world = launched(steps);
    operate(world, { action: 'pause' });
    world.answer(0);
    operate(world, killAll);
    expect([world.state.ending, world.state.nodes, calledBy(world)]).toEqual([{ kind: 'cancelled' }, {}, ['a']]);
  });

  it('Cancel ends it with its compensations, and what it held has no effect.', () => {
    const world = launched(steps);
    operate(world, { action: 'pause' });
    world.answer(0);
    operate(world, cancelAll);
    expect([world.state.ending, world.state.f]).toEqual([{ kind: 'cancelled' }, { cleaned: true }]);
    expect(calledBy(world)).toEqual(['a']);
  });
});

describe('a paused execution holds', () => {
  it('one answer of each attempt, however often it is sent.', () => {
    const world = launched([{ task: 'a' }]);
    operate(world, { action: 'pause' });
    const [nid = ''] = world.tasks.map((task) => task.nid);
    const answer = { point: 'answer', nid, attempt: 1, outcome: { kind: 'done', result: 1 } } as const;
    const codes = [1, 2, 3].map(() => world.send(answer).refused?.code);
    expect([codes, world.state.left.length]).toEqual([[undefined, 'too_late', 'too_late'], 1]);
  });
});

describe('leaving a loop', () => {
  it('A break of one item is not forgotten when another one continues at the same time.', () => {
    const first = [{ task: 'side', background: true }, { task: 'stop' }, 'break'];
    const body = [{ if: 'index == 0', then: first, else: [{ task: 'go' }, 'continue'] }];
    const world = launched([{ each: [1, 2, 3, 4], concurrent: 2, do: body }, { task: 'after' }]);
    world.answerTo('stop');
    world.answerTo('go');
    world.answerTo('side', true);
    expect(calledBy(world)).toEqual(['side', 'stop', 'go', 'after']);
  });

  it('What an item has set before it continues or breaks is kept.', () => {
    const body = [{ set: { 'f.last': '$(it)', ret: '$(it)' } }, { if: 'it == 3', then: ['break'], else: ['continue'] }];
    const world = launched([{ each: [1, 2, 3, 4], do: body, result: 'f.r' }]);
    expect(world.state.f).toMatchObject({ last: 3 });
  });

  it('What a step with attempts has set before it is left is kept.', () => {
    const retry = { max_attempts: 2 };
    const world = launched([{ loop: [{ sequence: [{ set: { 'f.x': 1 } }, 'break'], retry }] }]);
    expect(world.state.f).toEqual({ x: 1 });
  });
});
