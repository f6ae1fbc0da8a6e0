/** Conductors on real databases with the real engine. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Conducting, signal } from '../../test/harness/flows/conducting.ts';
import { until } from '../../test/harness/until.ts';

let world: Conducting;

beforeAll(async () => {
  world = await Conducting.make(['a', 'b']);
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

it('a launched execution calls three hosted functions one after the other, and is done', async () => {
  await world.flow({
    flow: 'three',
    steps: [
      { task: 'one', with: { n: '$(f.n)' }, result: 'f.n' },
      { task: 'two', with: { n: '$(f.n)' }, result: 'f.n' },
      { task: 'three', with: { n: '$(f.n)' }, result: 'f.n' },
    ],
  });
  const keys: string[] = [];
  const add = (input: unknown, { key }: { readonly key: string }): number => {
    keys.push(key);
    return (input as { n: number }).n + 1;
  };
  const one = await world.start({ functions: { one: add, two: add, three: add } });
  const delivered = await world.launch(one, 'three', { input: { n: 1 } });
  expect(delivered).toMatchObject({ outcome: 'committed' });
  const { head, state } = await world.ended(delivered.execution);
  expect(head).toMatchObject({ status: 'done', rev: 4, owner: one.conductor.id });
  expect(state.f).toEqual({ n: 4 });
  expect(new Set(keys).size).toBe(3);
  expect(keys[0]).toContain(delivered.execution);
});

it('an error of a hosted function has its code and its message', async () => {
  await world.flow({
    flow: 'failing',
    steps: [{ task: 'fail', on_error: [{ set: { 'f.code': '$(err.code)', 'f.why': '$(err.message)' } }] }],
  });
  const fail = (): never => {
    throw Object.assign(new Error('no money'), { code: 'declined' });
  };
  const one = await world.start({ functions: { fail } });
  const { execution } = await world.launch(one, 'failing');
  const { state } = await world.ended(execution);
  expect(state.f).toEqual({ code: 'declined', why: 'no money' });
});

it('a timer is committed soon after it is due, and never before', async () => {
  await world.flow({ flow: 'sleeper', steps: [{ wait: '300ms' }, { set: { 'f.done': true } }] });
  const one = await world.start();
  const { execution } = await world.launch(one, 'sleeper');
  await world.ended(execution);
  const timer = (await world.history(execution))[1];
  const lateMs = (timer?.at.getTime() ?? 0) - (timer?.message.plannedAt?.getTime() ?? Number.NaN);
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(2_000);
});

it('a signal that comes before and one that comes after the wait both count', async () => {
  await world.flow({
    flow: 'signalled',
    steps: [
      { wait: { on: { signal: 'first' } }, result: 'f.first' },
      { wait: { on: { signal: 'second' } }, result: 'f.second' },
    ],
  });
  const one = await world.start();
  const { execution } = await world.launch(one, 'signalled');
  expect(await world.send(one.port, signal(execution, 'second', 2))).toMatchObject({ outcome: 'committed' });
  expect(await world.send(one.port, signal(execution, 'first', 1))).toMatchObject({ outcome: 'committed' });
  const { state } = await world.ended(execution);
  expect(state.f).toMatchObject({ first: 1, second: 2 });
  expect(await world.send(one.port, signal(execution, 'late'))).toMatchObject({ outcome: 'refused', code: 'over' });
});

it('a message without a conductor is stored, and takes effect when one starts', async () => {
  await world.flow({ flow: 'alone', steps: [{ wait: { on: { signal: 'go' } } }] });
  const api = world.makeProcess();
  const launched = await world.launch(api, 'alone');
  expect(launched).toMatchObject({ outcome: 'accepted' });
  expect(await world.send(api.port, signal(launched.execution, 'go'))).toMatchObject({ outcome: 'accepted' });
  expect(await world.send(api.port, signal('00000000-0000-7000-8000-000000000000', 'go'))).toMatchObject({
    outcome: 'gone',
  });
  await world.start();
  const { head } = await world.ended(launched.execution);
  expect(head.status).toBe('done');
  await until('the inbox is empty', async () => {
    const { ctx } = await world.open();
    const { rows } = await ctx.pool.query('select from inbox');
    return rows.length === 0 || undefined;
  });
});
