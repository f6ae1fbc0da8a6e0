import { describe, expect, it } from 'vitest';
import type { Json } from '../../json.ts';
import { testFlow, type TestFlowOptions } from '../../testing/test-flow.ts';

function start(steps: unknown, options: TestFlowOptions = {}, more: Record<string, unknown> = {}) {
  return testFlow({ flow: 'f', steps, ...more }, options);
}

const echo = (input: Json): Json => input;
const boom = (): never => {
  throw Object.assign(new Error('boom'), { code: 'boom' });
};

describe('data', () => {
  it('Fields begin as the input, and steps set fields, variables and results.', async () => {
    const t = await start(
      [
        { set: { 'f.a.b': '$(f.n + 1)', 'v.x': 2 } },
        { set: { ret: '$(v.x * f.a.b)' }, result: 'f.product' },
        { task: 'echo', with: { ret: '$(ret)', input: '$(input.n)' }, result: 'f.echo' },
      ],
      { input: { n: 1 }, tasks: { echo } },
    );
    expect(t.fields).toEqual({ n: 1, a: { b: 2 }, product: 4, echo: { ret: 4, input: 1 } });
  });

  it('All right sides are computed before the first is set.', async () => {
    const t = await start([{ set: { 'f.a': '$(f.b)', 'f.b': '$(f.a)' } }], { input: { a: 1, b: 2 } });
    expect(t.fields).toEqual({ a: 2, b: 1 });
  });

  it('Variables of a scope end with it; known names are set where they are.', async () => {
    const t = await start([
      { set: { 'v.outer': 1 } },
      { sequence: [{ set: { 'v.outer': 2, 'v.inner': 3 } }, { set: { 'f.inside': '$(v)' } }], vars: { inner: 0 } },
      { set: { 'f.outside': '$(v)' } },
    ]);
    expect(t.fields).toEqual({ inside: { outer: 2, inner: 3 }, outside: { outer: 2 } });
  });
});

describe('if and switch', () => {
  it.each<[Json, Json]>([
    [{ n: 5 }, 'large'],
    [{ n: 1 }, 'one'],
    [{ n: 2 }, 'other'],
  ])('%j gives %s', async (input, expected) => {
    const t = await start(
      [
        {
          if: 'f.n > 3',
          then: [{ set: { 'f.r': 'large' } }],
          else: [{ switch: 'f.n', cases: { 1: [{ set: { 'f.r': 'one' } }] }, else: [{ set: { 'f.r': 'other' } }] }],
        },
      ],
      { input },
    );
    expect(t.fields['r']).toBe(expected);
  });

  it('A condition that is not true or false is an incident, and nothing else is touched.', async () => {
    const t = await start([{ if: 'f.n', then: [] }, { set: { 'f.after': 1 } }], { input: { n: 1 } });
    expect([t.status, t.fields]).toEqual(['incident', { n: 1 }]);
    expect(t.open[0]?.error).toMatchObject({
      code: 'expression_error',
      message: 'a condition must be true or false, not 1',
    });
  });
});

describe('parallel', () => {
  it('All branches begin at once, and the result is the list of theirs.', async () => {
    const t = await start([{ parallel: [{ task: 'a' }, { task: 'b' }], result: 'f.both' }]);
    expect(t.open.map(({ task }) => task)).toEqual(['a', 'b']);
    await t.answer('b', 2);
    await t.answer('a', 1);
    expect([t.status, t.fields]).toEqual(['done', { both: [1, 2] }]);
  });

  it('A branch that is a single step keeps its result as it says.', async () => {
    const t = await start([
      {
        parallel: [
          { task: 'a', result: 'f.a' },
          { task: 'b', result: 'f.b.inner' },
        ],
      },
    ]);
    await t.answer('b', 2);
    await t.answer('a', 1);
    expect([t.status, t.fields]).toEqual(['done', { a: 1, b: { inner: 2 } }]);
  });

  it('With expect, the first answers end it, and the others are cancelled.', async () => {
    const t = await start([
      { parallel: [{ task: 'a' }, { task: 'b', on_cancel: [{ set: { 'f.cancelled': true } }] }], expect: 1 },
    ]);
    await t.answer('a', 1);
    expect([t.status, t.result, t.fields]).toEqual(['done', [1, null], {}]);
  });

  it.each<[string, Json]>([
    ['first', { a: 1, deep: { one: 1, two: 2 }, same: 'b' }],
    ['last', { a: 1, deep: { one: 1, two: 2 }, same: 'a' }],
    ['ignore', {}],
  ])('Fields of branches are merged: %s', async (merge, expected) => {
    const t = await start([
      {
        parallel: [
          { sequence: [{ task: 'a' }, { set: { 'f.a': 1, 'f.deep.one': 1, 'f.same': 'a' } }] },
          { sequence: [{ task: 'b' }, { set: { 'f.deep.two': 2, 'f.same': 'b' } }] },
        ],
        merge,
      },
    ]);
    await t.answer('b');
    await t.answer('a');
    expect(t.fields).toEqual(expected);
  });

  it('A branch does not see what another one sets.', async () => {
    const t = await start([
      { parallel: [{ set: { 'f.a': 1 } }, { sequence: [{ task: 'wait' }, { set: { 'f.seen': '$(has(f.a))' } }] }] },
    ]);
    await t.answer('wait');
    expect(t.fields).toEqual({ a: 1, seen: false });
  });

  it('A branch may be retried, and its fields are merged as those of others.', async () => {
    let attempts = 0;
    const flaky = (): Json => (++attempts < 2 ? boom() : 'fine');
    const sequence = [{ set: { 'f.tries': '$(f.tries + 1)' } }, { task: 'flaky' }];
    const t = await start(
      [
        {
          parallel: [{ sequence, retry: { max_attempts: 2, delay: '1s' } }, { set: { 'f.b': 1 } }],
          merge: 'ignore',
          result: 'f.r',
        },
      ],
      { input: { tries: 0 }, tasks: { flaky } },
    );
    await t.skip('1s');
    expect([t.status, t.fields]).toEqual(['done', { tries: 0, r: ['fine', null] }]);
  });

  it('A branch that fails cancels the others.', async () => {
    const t = await start(
      [{ parallel: [{ task: 'boom' }, { task: 'b' }], on_error: [{ set: { 'f.why': '$(err.code)' } }] }],
      { tasks: { boom } },
    );
    expect([t.status, t.fields, t.open]).toEqual(['done', { why: 'boom' }, []]);
  });
});

describe('loops', () => {
  it('while is tested before each round, until after each.', async () => {
    const count = [{ set: { 'f.n': '$(f.n + 1)' } }];
    const rounds = async (loop: Record<string, unknown>): Promise<Json | undefined> =>
      (await start([{ loop: count, ...loop }], { input: { n: 0 } })).fields['n'];
    expect(await rounds({ while: 'f.n < 3' })).toBe(3);
    expect(await rounds({ until: 'f.n >= 3' })).toBe(3);
    expect(await rounds({ while: 'false' })).toBe(0);
    expect(await rounds({ until: 'true' })).toBe(1);
  });

  it('A loop without end fails after its limit.', async () => {
    const t = await start([{ loop: [{ set: { 'f.a': 1 } }], max: 5 }]);
    expect(t.open[0]?.error).toMatchObject({ code: 'loop_limit' });
  });

  it('break and continue leave the nearest loop, or the one with a tag.', async () => {
    const t = await start(
      [
        {
          tag: 'outer',
          loop: [
            { set: { 'f.rounds': '$(f.rounds + 1)' } },
            { if: 'f.rounds < 3', then: ['continue'] },
            { loop: [{ break: 'outer' }] },
            { set: { 'f.wrong': true } },
          ],
        },
      ],
      { input: { rounds: 0 } },
    );
    expect([t.status, t.fields]).toEqual(['done', { rounds: 3 }]);
  });

  it('each goes through lists and mappings, in order, and collects results.', async () => {
    const t = await start(
      [
        { each: 'f.list', do: [{ set: { ret: '$(it * 10 + index)', 'f.sum': '$(f.sum + it)' } }], result: 'f.r' },
        { each: 'f.map', do: [{ set: { ret: '$(key + string(it))' } }], result: 'f.m' },
        { each: [], do: [], result: 'f.none' },
      ],
      { input: { list: [1, 2, 3], map: { a: 1, b: 2 }, sum: 0 } },
    );
    expect(t.fields).toMatchObject({ r: [10, 21, 32], sum: 6, m: ['a1', 'b2'], none: [] });
  });

  it('break ends an each, and continue one of its items.', async () => {
    const body = [{ if: 'it == 2', then: ['continue'] }, { if: 'it == 4', then: ['break'] }, { set: { ret: '$(it)' } }];
    const t = await start([{ each: [1, 2, 3, 4, 5], do: body, result: 'f.r' }]);
    expect(t.fields).toEqual({ r: [1, null, 3, null, null] });
  });
});

describe('errors', () => {
  it('A failure goes to the nearest handler that fits.', async () => {
    const inner = { task: 'boom', on_error: [{ match: 'other', do: [{ set: { 'f.by': 'inner' } }] }] };
    const t = await start(
      [{ sequence: [inner], on_error: [{ match: ['boom', 'x'], do: [{ set: { 'f.by': 'outer' } }] }] }],
      {
        tasks: { boom },
      },
    );
    expect([t.status, t.fields]).toEqual(['done', { by: 'outer' }]);
  });

  it('A handler may have a condition, and its result is that of the step.', async () => {
    const handlers = [{ match: '$(err.code == "boom")', do: [{ set: { ret: '$(err.message)' } }] }];
    const t = await start([{ task: 'boom', on_error: handlers, result: 'f.r' }], { tasks: { boom } });
    expect(t.fields).toEqual({ r: 'boom' });
  });

  it('A failure that nothing handles is an incident: the rest goes on, and a person retries or skips it.', async () => {
    let isBroken = true;
    const sometimes = (): Json => (isBroken ? boom() : 'fine');
    const flow = [{ parallel: [{ task: 'sometimes' }, { task: 'other' }], result: 'f.r' }];
    const retried = await start(flow, { tasks: { sometimes, other: () => 'o' } });
    expect(retried.status).toBe('incident');
    isBroken = false;
    const node = retried.open[0]?.node ?? '';
    await retried.operate({ action: 'retry', nid: node });
    expect([retried.status, retried.fields]).toEqual(['done', { r: ['fine', 'o'] }]);
    isBroken = true;
    const skipped = await start(flow, { tasks: { sometimes, other: () => 'o' } });
    await skipped.operate({ action: 'skip', nid: skipped.open[0]?.node ?? '', result: 's' });
    expect([skipped.status, skipped.fields]).toEqual(['done', { r: ['s', 'o'] }]);
  });

  it('fail without a handler fails the execution.', async () => {
    const t = await start([{ sequence: [{ fail: { code: 'no', message: 'because $(f.n)', data: [1] } }] }], {
      input: { n: 1 },
    });
    expect([t.status, t.error]).toMatchObject(['failed', { code: 'no', message: 'because 1', data: [1] }]);
  });

  it('What a failed attempt has set is forgotten.', async () => {
    let attempts = 0;
    const flaky = (): Json => (++attempts < 3 ? boom() : null);
    const sequence = [{ set: { 'f.n': '$(f.n + 1)' } }, { task: 'flaky' }];
    const t = await start([{ sequence, retry: { max_attempts: 3, delay: '1s' } }], {
      input: { n: 0 },
      tasks: { flaky },
    });
    await t.skip('1m');
    expect([t.status, t.fields, attempts]).toEqual(['done', { n: 1 }, 3]);
  });

  it('A timeout bounds all attempts together, and on_timeout takes its place.', async () => {
    const t = await start(
      [
        {
          task: 'boom',
          retry: { max_attempts: 100, delay: '10s', factor: 1 },
          timeout: '35s',
          on_timeout: [{ set: { 'f.late': true } }],
        },
      ],
      { tasks: { boom } },
    );
    await t.skip('1h');
    expect([t.calls.length, t.fields]).toEqual([4, { late: true }]);
  });
});

describe('cancel, background and call', () => {
  it('cancel ends steps with a tag, and what follows them goes on.', async () => {
    const t = await start([
      { on: { signal: 'stop' }, do: [{ cancel: 'main' }] },
      {
        tag: 'main',
        sequence: [{ task: 'long' }, { set: { 'f.wrong': true } }],
        on_cancel: [{ set: { 'f.cleaned': true } }],
      },
      { set: { 'f.after': true } },
    ]);
    await t.signal('stop');
    expect([t.status, t.fields]).toEqual(['done', { cleaned: true, after: true }]);
  });

  it('A background step is cancelled when the steps around it have ended.', async () => {
    const t = await start([{ sequence: [{ task: 'side', background: true }, { task: 'main' }] }, { task: 'next' }]);
    expect(t.open.map(({ task }) => task)).toEqual(['side', 'main']);
    await t.answer('main');
    expect(t.open.map(({ task }) => task)).toEqual(['next']);
  });

  it('A called flow gives its result, and its failure is that of the step.', async () => {
    const steps = [
      { call: 'child', with: { n: '$(f.n)' }, result: 'f.r', on_error: [{ set: { 'f.failed': '$(err.code)' } }] },
    ];
    const good = await start(steps, { input: { n: 1 }, flows: { child: (input) => ({ got: input }) } });
    expect(good.fields['r']).toEqual({ got: { n: 1 } });
    const bad = await start(steps, { input: { n: 1 }, flows: { child: boom } });
    expect(bad.fields['failed']).toBe('boom');
  });

  it('A paused execution keeps answers and signals, and goes on with them.', async () => {
    const t = await start([
      { task: 'a', result: 'f.a' },
      { wait: { on: { signal: 'go' } }, result: 'f.go' },
    ]);
    await t.operate({ action: 'pause' });
    await t.answer('a', 1);
    await t.signal('go', 2);
    expect([t.status, t.fields]).toEqual(['paused', {}]);
    t.crash();
    await t.operate({ action: 'resume' });
    expect([t.status, t.fields]).toEqual(['done', { a: 1, go: 2 }]);
  });
});
