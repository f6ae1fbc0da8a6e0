/** Further attempts: what they begin with, and how long they may take. */
import { describe, expect, it } from 'vitest';
import { FlowWorld } from '../../../test/harness/flows/world.ts';
import type { Json } from '../json.ts';

function launched(steps: Json): FlowWorld {
  const world = new FlowWorld({ flow: 'f', steps });
  world.send({ point: 'launch', input: {} });
  return world;
}

describe('further attempts', () => {
  it('Branches of a failed attempt leave neither fields nor results behind.', () => {
    const branch = { sequence: [{ task: 'a' }, { set: { 'f.a': '$(ret)' } }] };
    const parallel = [branch, { task: 'b' }, { task: 'c' }];
    const world = launched([{ parallel, expect: 2, retry: { max_attempts: 2 }, result: 'f.r' }]);
    world.answerTo('a', false, 'old');
    world.answerTo('b', true);
    world.answerTo('c');
    world.fireNext();
    world.answerTo('b', false, 'b');
    world.answerTo('c', false, 'c');
    world.drain();
    expect(world.state.f).toEqual({ r: [null, 'b', 'c'] });
  });

  it('The result of a failed attempt is not that of the last step in the next one.', () => {
    const world = launched([
      { set: { ret: 'before' } },
      { sequence: [{ set: { 'f.seen': '$(ret)' } }, { task: 'a' }, { task: 'b' }], retry: { max_attempts: 2 } },
    ]);
    world.answerTo('a', false, 'old');
    world.answerTo('b', true);
    world.fireNext();
    world.answerTo('a');
    world.answerTo('b');
    expect(world.state.f).toEqual({ seen: 'before' });
  });

  it('A step that a person retries has its timeout again.', () => {
    const world = launched([{ task: 'a', timeout: '1h', on_timeout: [{ set: { 'f.late': true } }] }]);
    world.answer(0, true);
    const [nid = ''] = Object.entries(world.state.nodes).find(([, { phase }]) => phase === 'incident') ?? [];
    world.send({ point: 'operate', operation: { action: 'retry', nid } });
    expect(world.timers.map(({ name }) => name)).toEqual([`${nid}/timeout`]);
    world.fireNext();
    expect(world.drain()).toBe(true);
    expect(world.state.f).toEqual({ late: true });
  });

  it('A failure that `fail` raises is retried as any other.', () => {
    const sequence = [{ task: 'a' }, { fail: { code: 'bad' } }];
    const world = launched([{ sequence, retry: { max_attempts: 2, on: ['bad'] } }]);
    world.answer(0);
    world.fireNext();
    expect(world.tasks.map(({ name }) => name)).toEqual(['a', 'a']);
    world.answer(0);
    expect(world.state.ending).toMatchObject({ kind: 'failed', error: { code: 'bad' } });
  });
});

describe('branches', () => {
  it('A parallel that waits for the rest does not wait for branches that never begin.', () => {
    const parallel = [{ task: 'a' }, { task: 'b' }, { task: 'c' }];
    const world = launched([{ parallel, expect: 1, concurrent: 2, rest: 'wait', result: 'f.r' }]);
    world.answerTo('b', false, 'b');
    world.answerTo('a', false, 'a');
    expect([world.state.ending, world.state.f]).toEqual([{ kind: 'done' }, { r: ['a', 'b', null] }]);
  });

  it('A compensation of a step in a handler knows the error that was handled.', () => {
    const world = launched([
      {
        sequence: [{ task: 'a', on_error: [{ task: 'h', undo: [{ task: 'u', with: { why: '$(err.message)' } }] }] }],
      },
      { fail: 'later' },
    ]);
    world.answerTo('a', true);
    world.answerTo('h');
    expect(world.tasks.at(-1)).toMatchObject({ name: 'u', input: { why: 'no' } });
  });
});
