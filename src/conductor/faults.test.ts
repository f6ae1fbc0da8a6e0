/** Conductors beside each other, and what goes wrong: lost answers, changed tenants, conductors that leave or are silent. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Conducting, launchMessage, signal, type TestConductor } from '../../test/harness/flows/conducting.ts';
import { until } from '../../test/harness/until.ts';
import type { Delivered } from '../contract/flow-messages.ts';
import { StoreDriver } from '../../test/harness/flows/store-driver.ts';
import { makeGate } from '../../test/harness/gate.ts';
import { flowEngine } from '../flows/flow-engine.ts';
import { newId } from '../kernel/id.ts';
import { type Sql, sql } from '../kernel/sql.ts';

let world: Conducting;

beforeAll(async () => {
  world = await Conducting.make(['a', 'b']);
  for (const tenant of ['a', 'b']) {
    await world.flow(
      {
        flow: 'three',
        steps: ['one', 'two', 'three'].map((task) => ({ task, with: { n: '$(f.n)' }, result: 'f.n' })),
      },
      tenant,
    );
    await world.flow(
      {
        flow: 'listener',
        steps: [
          { on: { signal: 'add' }, do: [{ set: { 'f.n': '$(f.n + 1)' } }] },
          { wait: { on: { signal: 'stop' } } },
        ],
      },
      tenant,
    );
  }
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

/** Counts calls by key. */
function counting(): {
  readonly calls: Map<string, number>;
  readonly functions: Record<string, (input: unknown, context: { readonly key: string }) => Promise<number>>;
} {
  const calls = new Map<string, number>();
  const add = async (input: unknown, { key }: { readonly key: string }): Promise<number> => {
    calls.set(key, (calls.get(key) ?? 0) + 1);
    await new Promise((resolve) => setImmediate(resolve));
    return (input as { n: number }).n + 1;
  };
  return { calls, functions: { one: add, two: add, three: add } };
}

async function launchMany(one: TestConductor, count: number, tenant = 'a'): Promise<Delivered[]> {
  const messages = Array.from({ length: count }, () => launchMessage('three', { n: 1 }));
  return one.port.deliver(world.tenant(tenant), messages, 20_000);
}

async function allDone(ids: readonly string[], tenant = 'a'): Promise<void> {
  const db = await world.db(tenant);
  await until(`${ids.length} executions are done`, async () => {
    const { count } = await db.one<{ count: number }>(sql`
      select count(*)::integer as count from execution where id = any (${ids}::uuid[]) and status = 3`);
    return count === ids.length || undefined;
  });
}

it('three hundred executions of two tenants run at once, and each call is made once', async () => {
  const { calls, functions } = counting();
  const one = await world.start({ functions });
  const [a, b] = await Promise.all([launchMany(one, 200), launchMany(one, 100, 'b')]);
  expect([...a, ...b].every(({ outcome }) => outcome === 'committed')).toBe(true);
  await allDone(a.map(({ execution }) => execution));
  await allDone(
    b.map(({ execution }) => execution),
    'b',
  );
  expect(calls.size).toBe(900);
  expect([...calls.values()].every((count) => count === 1)).toBe(true);
});

it('nothing is lost or doubled although the server ends the connections of the puts again and again', async () => {
  const { calls, functions } = counting();
  const one = await world.start({ functions });
  const launches = launchMany(one, 150);
  const db = world.fleet.control.db;
  let isOver = false;
  const terminating = (async () => {
    for (let round = 0; !isOver; round++) {
      await db.exec(sql`
        select pg_terminate_backend(pid) from pg_stat_activity
         where application_name like ${`fleet % a`} and query like '%commit_executions%' and state = 'active'`);
      await new Promise((resolve) => setTimeout(resolve, 15));
      if (round > 200) return;
    }
  })();
  const delivered = await launches;
  const ids = delivered.filter(({ outcome }) => outcome !== 'refused').map(({ execution }) => execution);
  expect(ids).toHaveLength(150);
  await allDone(ids);
  isOver = true;
  await terminating;
  const rows = await (await world.db()).rows<{ n: number }>(sql`
    select rev as n from execution where id = any (${ids}::uuid[])`);
  expect(rows.every(({ n }) => n === 4)).toBe(true);
  expect(calls.size).toBe(450);
});

it('executions go on with the same calls after their tenant was closed in the middle', async () => {
  const { calls, functions } = counting();
  const one = await world.start({ functions });
  const launches = launchMany(one, 200);
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setTimeout(resolve, 40));
    world.fleet.hub.send('tenant', world.tenant(), true);
  }
  const delivered = await launches;
  expect(delivered.every(({ outcome }) => outcome === 'committed' || outcome === 'accepted')).toBe(true);
  await allDone(delivered.map(({ execution }) => execution));
  expect(calls.size).toBe(600);
});

it('the answer of a function that cannot be stored while its tenant is closed is asked for again', async () => {
  const [isCalled, mayAnswer, isStored] = [makeGate(), makeGate(), makeGate()];
  const [isPut, mayPut] = [makeGate(), makeGate()];
  let calls = 0;
  const one = async (): Promise<number> => {
    calls += 1;
    isCalled.open();
    await mayAnswer.passed;
    return 2;
  };
  const { functions } = counting();
  const conductor = await world.start({
    functions: { ...functions, one },
    engine: (real) => ({
      async accept(ctx, messages, owner) {
        if (calls > 1) return real.accept(ctx, messages, owner);
        isStored.open();
        throw new Error('the connection is lost');
      },
      async put(ctx, runs, as) {
        if (runs.some(({ message: { point } }) => point === 'signal')) {
          isPut.open();
          await mayPut.passed;
        }
        return real.put(ctx, runs, as);
      },
    }),
  });
  const { execution: busy } = await world.launch(conductor, 'listener', { input: { n: 0 } });
  const { execution } = await world.launch(conductor, 'three', { input: { n: 1 } });
  await isCalled.passed;
  // a commit under way keeps the tenant from being closed at once
  const sent = world.send(conductor.port, signal(busy, 'add'));
  await isPut.passed;
  world.fleet.hub.send('tenant', world.tenant(), true);
  await until('it is being closed', () => (conductor.conductor.phases()['stopping'] ?? 0) > 0 || undefined);
  mayAnswer.open();
  await isStored.passed;
  mayPut.open();
  await sent;
  expect((await world.ended(execution)).state.f).toEqual({ n: 4 });
  expect(calls).toBe(2);
});

it('a conductor that stops leaves its calls to another, which repeats them with the same keys', async () => {
  const keys: string[] = [];
  const stuck = (_: unknown, { key, signal: stop }: { readonly key: string; readonly signal: AbortSignal }) => {
    keys.push(key);
    return new Promise((_resolve, reject) => stop.addEventListener('abort', () => reject(new Error('stopped'))));
  };
  const first = await world.start({ functions: { one: stuck } });
  const { execution } = await world.launch(first, 'three', { input: { n: 1 } });
  await until('it is called', () => keys.length === 1 || undefined);
  const { calls, functions } = counting();
  const second = await world.start({ functions });
  await first.stop();
  const { head } = await world.ended(execution);
  expect(head).toMatchObject({ status: 'done', owner: second.conductor.id });
  expect(calls.get(keys[0] ?? '')).toBe(1);
});

it('a conductor that was silent forgets its calls before it repeats any under its new id', async () => {
  await world.flow({
    flow: 'renewed',
    steps: [
      { on: { signal: 'add' }, do: [{ set: { 'f.n': '$(f.n + 1)' } }] },
      { task: 'hang', result: 'f.made' },
    ],
  });
  let calls = 0;
  const hang = (_: unknown, { signal: stop }: { readonly signal: AbortSignal }): unknown => {
    calls += 1;
    return calls > 1 ? calls : new Promise((_resolve, reject) => stop.addEventListener('abort', reject));
  };
  const [isRenewing, mayRenew] = [makeGate(), makeGate()];
  const { db } = world.fleet.control;
  const control = {
    ...db,
    async exec(query: Sql) {
      if (query.compile().text.includes('set lost_at')) {
        isRenewing.open();
        await mayRenew.passed;
      }
      return db.exec(query);
    },
  };
  const one = await world.start({ functions: { hang }, control });
  const { execution } = await world.launch(one, 'renewed', { input: { n: 0 } });
  await until('it is called', () => calls === 1 || undefined);
  // another conductor has taken it for dead
  await db.exec(sql`update conductor set lost_at = clock_timestamp()`);
  await isRenewing.passed;
  expect(await world.send(one.port, signal(execution, 'add'))).toMatchObject({ outcome: 'committed' });
  mayRenew.open();
  expect((await world.ended(execution)).state.f).toEqual({ n: 1, made: 2 });
});

it('others know in which tenants a conductor drives executions before it makes its first call', async () => {
  const { db } = world.fleet.control;
  const [isCalled, mayAnswer] = [makeGate(), makeGate()];
  const one = async (): Promise<number> => {
    isCalled.open();
    await mayAnswer.passed;
    return 1;
  };
  const { functions } = counting();
  const first = await world.start({ functions: { ...functions, one } });
  const { execution } = await world.launch(first, 'three', { input: { n: 1 } });
  await isCalled.passed;
  const { tenants } = await db.one<{ tenants: string[] }>(sql`select tenants from conductor`);
  expect(tenants).toContain(world.tenant());
  mayAnswer.open();
  await world.ended(execution);
});

it('a call waits until a conductor hosts its function', async () => {
  const { functions } = counting();
  const without = await world.start({ functions: { one: functions['one'] ?? (() => 0) } });
  const { execution } = await world.launch(without, 'three', { input: { n: 1 } });
  await until('the first function has answered', async () => (await world.head(execution)).rev === 2 || undefined);
  await world.start({ functions: { two: functions['two'] ?? (() => 0) } });
  await until('the second has answered', async () => (await world.stored(execution))?.state.f['n'] === 3 || undefined);
  await world.start({ functions: { three: functions['three'] ?? (() => 0) } });
  const { state } = await world.ended(execution);
  expect(state.f).toEqual({ n: 4 });
});

it('functions are kept from tenants that may run no local tasks, and called once these may', async () => {
  const { functions, calls } = counting();
  const closed = await world.start({ functions, localTasks: 'default' });
  const { execution } = await world.launch(closed, 'three', { input: { n: 1 } });
  await until('it waits for a host', async () =>
    (await world.db()).maybeOne(sql`select from tracker where execution_id = ${execution} and kind = 'function'`),
  );
  // takes the execution over, which repeats the calls of the state
  const other = await world.start({ functions, localTasks: 'default' });
  await closed.stop();
  await until(
    'the other one drives it',
    async () => (await world.head(execution)).owner === other.conductor.id || undefined,
  );
  await other.stop();
  expect(calls.size).toBe(0);
  await world.start({ functions });
  const { state } = await world.ended(execution);
  expect(state.f).toEqual({ n: 4 });
});

it('a timer fires although the conductor that takes it over remembers an older state of its execution', async () => {
  const { functions } = counting();
  const { one: f1 = () => 0, two: f2 = () => 0 } = functions;
  await world.flow({
    flow: 'moving',
    steps: [{ task: 'one', with: { n: 1 } }, { task: 'two', with: { n: 1 } }, { wait: '1s' }],
  });
  const a = await world.start({ functions: { one: f1 } });
  const b = await world.start({ functions: { two: f2 } });
  const { execution } = await world.launch(a, 'moving');
  await until('the other conductor has set the timer', async () => {
    const { owner, status } = await world.head(execution);
    return (owner === b.conductor.id && status === 'waiting') || undefined;
  });
  await b.stop();
  const { head } = await world.ended(execution);
  expect(head).toMatchObject({ status: 'done', owner: a.conductor.id });
});

it('a conductor that leaves a dead one’s execution to another wakes that one', async () => {
  await world.flow({ flow: 'orphan', steps: [{ task: 'one', with: { n: 1 } }] });
  const { functions } = counting();
  const host = await world.start({ functions, times: { checkEveryMs: 600_000, idleMs: 50, checkedMs: 50 } });
  await until('it has closed its tenants', () => host.conductor.phases()['resting'] === 2 || undefined);
  const { ctx } = await world.open();
  const dead = new StoreDriver({ ctx, engine: flowEngine, hosted: ['one'] });
  const id = await dead.launch('orphan');
  await world.start();
  const { head } = await world.ended(id);
  expect(head).toMatchObject({ status: 'done', owner: host.conductor.id });
});

it('an execution moves between conductors that host different functions while both are alive', async () => {
  const { functions } = counting();
  const { one: f1 = () => 0, two: f2 = () => 0, three: f3 = () => 0 } = functions;
  const a = await world.start({ functions: { one: f1, three: f3 } });
  await world.start({ functions: { two: f2 } });
  const ids = await Promise.all(Array.from({ length: 20 }, () => world.launch(a, 'three', { input: { n: 1 } })));
  await allDone(ids.map(({ execution }) => execution));
});

it('signals through two conductors to the same executions are all counted once', async () => {
  const [a, b] = [await world.start(), await world.start()];
  const { execution } = await world.launch(a, 'listener', { input: { n: 0 } });
  const sends = Array.from({ length: 60 }, (_, i) => world.send((i % 2 === 0 ? a : b).port, signal(execution, 'add')));
  const outcomes = await Promise.all(sends);
  expect(outcomes.every(({ outcome }) => outcome === 'committed' || outcome === 'accepted')).toBe(true);
  await until('all are counted', async () => (await world.stored(execution))?.state.f['n'] === 60 || undefined);
  await world.send(b.port, signal(execution, 'stop'));
  await world.ended(execution);
});

it('two conductors that both take themselves for the owner make one chain of commits', async () => {
  const { port, loader } = world.makeProcess();
  const [a, b] = [await world.start(), await world.start()];
  const message = launchMessage('listener', { n: 0 });
  await world.send(port, message);
  const sends = Array.from({ length: 40 }, (_, i) =>
    world.send((i % 2 === 0 ? a : b).port, signal(message.execution, 'add')),
  );
  await Promise.all(sends);
  await until('all are counted', async () => (await world.stored(message.execution))?.state.f['n'] === 40 || undefined);
  const history = await world.history(message.execution);
  expect(history.map(({ rev }) => rev)).toEqual(history.map((_, i) => i + 1));
  await loader.closeAll();
});

it('a repeated signal with the same id has one effect, and a launch with a known key gives the first execution', async () => {
  const one = await world.start();
  const first = await world.launch(one, 'listener', { input: { n: 0 }, key: 'k1' });
  const again = await world.launch(one, 'listener', { input: { n: 0 }, key: 'k1' });
  expect(again).toMatchObject({ outcome: 'known', execution: first.execution });
  const id = newId();
  for (let i = 0; i < 3; i++) await world.send(one.port, signal(first.execution, 'add', null, id));
  expect((await world.stored(first.execution))?.state.f).toEqual({ n: 1 });
});

it('a launch of an unknown flow is refused', async () => {
  const one = await world.start();
  expect(await world.launch(one, 'nothing')).toMatchObject({ outcome: 'refused', code: 'no_such_flow' });
});

it('a tenant that is closed answers its messages by storing them', async () => {
  const one = await world.start({
    engine: (real) => ({ put: (ctx, runs, as) => slow(() => real.put(ctx, runs, as)) }),
  });
  const deliveries = Array.from({ length: 20 }, () => world.launch(one, 'listener', { input: { n: 0 } }));
  await one.stop();
  const outcomes = await Promise.all(deliveries);
  expect(outcomes.every(({ outcome }) => outcome === 'committed' || outcome === 'accepted')).toBe(true);
  const second = await world.start();
  for (const { execution } of outcomes)
    await until('it is launched', async () => (await world.head(execution)).rev > 0 || undefined);
  await second.stop();
});

it('a message whose commit has no answer when its tenant is closed does not wait for ever', async () => {
  let release = (): void => {};
  const hanging = new Promise<void>((resolve) => (release = resolve));
  let isSent = false;
  let fetches = 0;
  const one = await world.start({
    engine: (real) => ({
      fetch: (ctx, ids) => {
        fetches += 1;
        return real.fetch(ctx, ids);
      },
      put: async () => {
        isSent = true;
        await hanging;
        throw Object.assign(new Error('the connection is closed'), { code: '57P01' });
      },
    }),
  });
  const delivery = world.launch(one, 'listener', { input: { n: 0 } }).catch(() => 'rejected');
  await until('the commit is sent', () => isSent || undefined);
  await one.stop();
  release();
  await delivery;
  expect(fetches).toBe(0);
});

async function slow<T>(work: () => Promise<T>): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  return work();
}
