import type { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type Fleet, makeFleet, type TestTenant } from '../../test/harness/fleet.ts';
import { makeContext } from '../../test/harness/engine-context.ts';
import { networkTo } from '../../test/harness/network.ts';
import { until } from '../../test/harness/until.ts';
import type { EngineContext } from '../contract/context.ts';
import { formatCause } from '../control/format-reason.ts';
import type { Engine, Scheduler } from '../contract/engine.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { pause, within } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { type Address, onDatabase } from '../postgres/address.ts';
import { withClient } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import type { Ending } from './singleton.ts';
import { runScheduler, type TenantSchedulerOptions, usualLimits } from './tenant-scheduler.ts';

let fleet: Fleet;
let tenant: TestTenant;
let address: Address;
let alive = 0;
let most = 0;
const attempts: { readonly abort: AbortController; readonly ending: Promise<Ending> }[] = [];
beforeAll(async () => {
  fleet = await makeFleet(['a']);
  tenant = fleet.tenants[0] ?? tenant;
  address = onDatabase(fleet.control.address, tenant.row.database);
});
afterEach(async () => {
  for (const { abort } of attempts) abort.abort();
  await Promise.all(attempts.splice(0).map(({ ending }) => ending));
  [alive, most] = [0, 0];
});
afterAll(() => fleet.close());

const application = 'millrace host 0123456789ab 0.1.0 a';
const hour = 3_600_000;
const never = (): Promise<never> => new Promise(() => {});

/** An engine whose scheduler counts its live instances. `part` overrides its functions. */
function scheduled(part: (ctx: EngineContext) => Partial<Scheduler> = () => ({})): Engine {
  return {
    ...engine,
    scheduler: (ctx) => ({
      name: 'counted',
      async start() {
        most = Math.max(most, ++alive);
      },
      async stop() {
        alive--;
      },
      probe: async () => {},
      ...part(ctx),
    }),
  };
}

interface Running extends Readonly<{ said: string[]; ending: Promise<Ending> }> {
  stop(): Promise<Ending>;
}

function run(with_: Engine = scheduled(), more: Partial<TenantSchedulerOptions> = {}): Running {
  const said: string[] = [];
  const abort = new AbortController();
  const ending = runScheduler(
    {
      address,
      application,
      version: engineVersion,
      allowPooler: false,
      poolSize: 4,
      engines: { find: async () => ({ ok: true, engine: with_ }) },
      contextFor: (pool: Pool) => makeContext({ address, pool, time: fleet.time }),
      limits: { ...usualLimits, lockMs: 500, probeEveryMs: hour, stopMs: 500 },
      onWait: (reason) => said.push(formatCause(reason)),
      onRunning: () => said.push('running'),
      onTrouble: () => {},
      onHang: (reason) => said.push(formatCause(reason)),
      ...more,
    },
    abort.signal,
  );
  attempts.push({ abort, ending });
  return {
    said,
    ending,
    stop: () => {
      abort.abort();
      return ending;
    },
  };
}
const isRunning = ({ said }: Running) => until('it runs', () => said.includes('running') || undefined);
const connections = (): Promise<{ pid: number }[]> =>
  fleet.control.db.rows(sql`
    select pid from pg_stat_activity where application_name = ${application} and datname = ${tenant.row.database}`);
const allDisconnected = (): Promise<true> =>
  until('all connections are closed', async () => (await connections()).length === 0 || undefined);
const isFree = (lock: readonly [number, number]): Promise<boolean> =>
  withClient(address, async (client) => {
    const { rows } = await client.query<{ free: boolean }>('select pg_try_advisory_lock($1, $2) as free', [...lock]);
    return rows[0]?.free === true;
  });

describe('scheduler of a tenant', () => {
  it('a scheduler runs until it is stopped, on one connection that is named after its host and engine', async () => {
    const running = run();
    await isRunning(running);
    expect([alive, most]).toEqual([1, 1]);
    await until('it has one', async () => (await connections()).length === 1);
    expect(await running.stop()).toMatchObject({ code: 'stopping', message: 'its host was told to end it' });
    expect(alive).toBe(0);
    await allDisconnected();
  });

  it('a scheduler waits for a predecessor that is ending, and names it (I5)', async () => {
    const first = run();
    await isRunning(first);
    const second = run(undefined, { limits: { ...usualLimits, lockMs: 10_000 } });
    await until('it waits', () => second.said.length > 0 || undefined);
    expect(second.said).toEqual([textWith('another scheduler')]);
    expect(second.said).toEqual([textWith(application)]);
    await first.stop();
    await isRunning(second);
    expect(most).toBe(1);
  });

  it('a scheduler gives up if its predecessor does not end (I5)', async () => {
    const first = run();
    await isRunning(first);
    expect(await run().ending).toMatchObject({ code: 'starting', message: textWith('another scheduler') });
    expect(most).toBe(1);
  });

  it('a scheduler ends when the connection of its lock is lost, so that no two run at once (I5)', async () => {
    const running = run();
    await isRunning(running);
    await fleet.control.db.exec(sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where application_name = ${application} and datname = ${tenant.row.database}`);
    expect(await running.ending).toMatchObject({ code: 'unreachable', message: textWith('lost') });
    expect(alive).toBe(0);
  });

  it('a scheduler that loses the connection of its lock loses all others at once, even if it stops slowly (I5)', async () => {
    let pool: Pool | undefined;
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    const slow = scheduled((ctx) => ((pool = ctx.pool), { stop: () => gate }));
    const running = run(slow, { limits: { ...usualLimits, stopMs: 30_000 } });
    await isRunning(running);
    const [own, other] = [await pool?.connect(), await pool?.connect()];
    for (const client of [own, other]) client?.on('error', () => {});
    const lock = Number(Reflect.get(own ?? {}, 'processID'));
    const sleeping = other?.query('select pg_sleep(60)').catch(() => 'cut off');
    await fleet.control.db.exec(sql`select pg_terminate_backend(${lock}::integer)`);
    expect(await within(20_000, sleeping ?? never())).toBe('cut off');
    await expect(pool?.query('select 1')).rejects.toThrow('closed');
    letGo();
    expect(await running.ending).toMatchObject({ code: 'unreachable' });
  });

  it('a scheduler that throws at its start ends as crashed, with the error text', async () => {
    const start = async (): Promise<void> => {
      throw new Error('no luck');
    };
    expect(await run(scheduled(() => ({ start }))).ending).toMatchObject({ code: 'crashed', message: 'no luck' });
    const made = (): Scheduler => {
      throw new Error('not even made');
    };
    expect(await run({ ...engine, scheduler: made }).ending).toMatchObject({
      code: 'crashed',
      message: 'not even made',
    });
    await allDisconnected();
  });

  it('a scheduler that does not start in time ends as crashed', async () => {
    const limits = { ...usualLimits, startMs: 2_000, stopMs: 200 };
    const running = run(
      scheduled(() => ({ start: never })),
      { limits },
    );
    expect(await running.ending).toMatchObject({ code: 'crashed', message: textWith('did not start within 2 s') });
    await allDisconnected();
  });

  it('a scheduler reports a missing engine, another version, a missing installation or a missing database', async () => {
    const engines = { find: async () => ({ ok: false, detail: 'it is not here' }) as const };
    expect(await run(undefined, { engines }).ending).toMatchObject({ code: 'no_engine', message: 'it is not here' });
    const other = await run(undefined, { version: '0.0.9' }).ending;
    expect(other).toMatchObject({ code: 'starting', message: `its version is ${engineVersion}` });
    const bare = fleet.control.address;
    expect(await run(undefined, { address: bare }).ending).toMatchObject({ code: 'not_installed' });
    const gone = onDatabase(address, 'no_such_database');
    expect(await run(undefined, { address: gone }).ending).toMatchObject({ code: 'gone' });
    const silent = { ...address, url: 'postgres://nobody@127.0.0.1:9/x' };
    expect(await run(undefined, { address: silent }).ending).toMatchObject({ code: 'unreachable' });
  });

  it('a scheduler does not start while a transaction changes the tenant (I6)', async () => {
    await withClient(address, async (client) => {
      await client.query('begin');
      await client.query('select pg_advisory_xact_lock($1, $2)', [...locks.drain]);
      expect(await run().ending).toMatchObject({ code: 'starting', message: 'a transaction is changing it' });
      await client.query('rollback');
    });
    expect(most).toBe(0);
  });

  it('a scheduler can be stopped while it waits for a transaction that changes the tenant', async () => {
    await withClient(address, async (client) => {
      await client.query('select pg_advisory_lock($1, $2)', [...locks.drain]);
      const waiting = run();
      await until('it waits', async () => (await connections()).length > 0 || undefined);
      const startedAt = performance.now();
      expect(await waiting.stop()).toMatchObject({ code: 'stopping' });
      expect(performance.now() - startedAt).toBeLessThan(1_000);
    });
    await allDisconnected();
  });

  it('a scheduler does not wait for a lock on the table that records the version', async () => {
    await withClient(address, async (client) => {
      await client.query('begin');
      await client.query('lock table millrace.installation in access exclusive mode');
      expect(await run().ending).toMatchObject({ code: 'starting', message: 'a transaction is changing it' });
      await client.query('rollback');
    });
    let pool: Pool | undefined;
    await isRunning(run(scheduled((ctx) => ((pool = ctx.pool), {}))));
    expect((await pool?.query('show lock_timeout'))?.rows).toEqual([{ lock_timeout: '0' }]);
  });

  it('a scheduler gives up on a server that accepts its connection but is silent, and can be stopped meanwhile', async () => {
    const network = await networkTo(address);
    network.fallSilent();
    const limits = { ...usualLimits, startMs: 300 };
    const ending = await run(undefined, { address: network.address, limits }).ending;
    expect(ending).toMatchObject({ code: 'unreachable', message: textWith('within 0.3 s') });
    const waiting = run(undefined, { address: network.address });
    await pause(50);
    expect(await within(1_000, waiting.stop())).toMatchObject({ code: 'stopping' });
    network.close();
  });

  it('a scheduler gives up on an engine that does not load, and can be stopped meanwhile', async () => {
    const engines = { find: never };
    const limits = { ...usualLimits, startMs: 200 };
    const ending = await run(undefined, { engines, limits }).ending;
    expect(ending).toMatchObject({ code: 'crashed', message: textWith('did not load within 0.2 s') });
    expect(await within(1_000, run(undefined, { engines }).stop())).toMatchObject({ code: 'stopping' });
  });

  it('a scheduler can be stopped while it requests its lock on a connection that does not answer', async () => {
    const first = run();
    await isRunning(first);
    const network = await networkTo(address);
    const waiting = run(undefined, { address: network.address, limits: { ...usualLimits, lockMs: hour } });
    await until('it waits for the first', () => waiting.said.length > 0 || undefined);
    network.fallSilent();
    await pause(300);
    expect(await within(1_000, waiting.stop())).toMatchObject({ code: 'stopping' });
    network.close();
  });

  it('a scheduler keeps a migration waiting while it runs, and lets it through when it has stopped (I6)', async () => {
    const running = run();
    await isRunning(running);
    expect(await isFree(locks.drain)).toBe(false);
    await running.stop();
    await until('the lock is free', async () => (await isFree(locks.drain)) || undefined);
  });
});

describe('tenant that is changed without its lock', () => {
  const limits = { ...usualLimits, stopMs: 500, versionEveryMs: 20 };
  const inTenant = (text: string) => withClient(address, (client) => client.query(text));

  it('a scheduler ends when the version changes, and reports the new version', async () => {
    const running = run(undefined, { limits });
    await isRunning(running);
    await inTenant(`update millrace.installation set version = '9.9.9'`);
    try {
      expect(await running.ending).toMatchObject({ code: 'starting', message: 'its version is 9.9.9' });
      expect(alive).toBe(0);
      await allDisconnected();
    } finally {
      await inTenant(`update millrace.installation set version = '${engineVersion}'`);
    }
  });

  it('a scheduler keeps running when the version is written again unchanged', async () => {
    const running = run(undefined, { limits });
    await isRunning(running);
    await inTenant(`update millrace.installation set version = '${engineVersion}'`);
    expect(await within(300, running.ending)).toBeUndefined();
  });

  it.each(['commit', 'rollback'])('a scheduler obeys the %s of a transaction that removes its schema', async (end) => {
    const running = run(undefined, { limits });
    await isRunning(running);
    await withClient(address, async (client) => {
      await client.query('begin; alter schema millrace rename to dropped');
      expect(await within(200, running.ending)).toBeUndefined();
      await client.query(end);
    });
    if (end === 'rollback') return expect(await within(300, running.ending)).toBeUndefined();
    try {
      expect(await running.ending).toMatchObject({ code: 'not_installed' });
      expect(alive).toBe(0);
    } finally {
      await inTenant('alter schema dropped rename to millrace');
    }
  });

  it('a scheduler whose connections are all busy ends as well when the version changes', async () => {
    const busy = run(
      scheduled(({ pool }) => ({ start: async () => void pool.query('select pg_sleep(60)').catch(() => {}) })),
      { limits },
    );
    await isRunning(busy);
    await inTenant(`update millrace.installation set version = '9.9.9'`);
    try {
      expect(await busy.ending).toMatchObject({ code: 'starting', message: 'its version is 9.9.9' });
    } finally {
      await inTenant(`update millrace.installation set version = '${engineVersion}'`);
    }
  });
});

describe('scheduler that hangs', () => {
  const quick = { ...usualLimits, probeEveryMs: 20, probeMs: 100, stopMs: 200 };

  it.each([
    ['did not answer', never, 'hangs'],
    ['rejected', () => Promise.reject(new Error('triggers has not come round')), 'triggers has not come round'],
  ])('a scheduler is stopped after two probes in a row that it %s', async (_, probe, reason) => {
    const hanging = scheduled(() => ({ probe }));
    expect(await run(hanging, { limits: quick }).ending).toMatchObject({ code: 'crashed', message: textWith(reason) });
    expect([alive, most]).toEqual([0, 1]);
  });

  it('a scheduler that fails single probes is kept', async () => {
    let probes = 0;
    const probe = async (): Promise<void> => {
      if (probes++ % 2 === 0) throw new Error('not now');
    };
    const forgetful = scheduled(() => ({ probe }));
    const running = run(forgetful, { limits: quick });
    await until('it was probed', () => probes > 6 || undefined);
    expect(alive).toBe(1);
    expect(await running.stop()).toMatchObject({ code: 'stopping' });
  });

  it('a hanging scheduler that does not stop loses its connections and can no longer touch the tenant (I6)', async () => {
    let pool: Pool | undefined;
    let isHung = false;
    const probe = (): Promise<void> => (isHung ? never() : Promise.resolve());
    const held = scheduled((ctx) => ((pool = ctx.pool), { probe, stop: never }));
    const running = run(held, { limits: quick });
    await isRunning(running);
    const [own, other] = [await pool?.connect(), await pool?.connect()];
    for (const client of [own, other]) client?.on('error', () => {});
    const sleeping = other?.query('select pg_sleep(60)').catch(() => 'cut off');
    isHung = true;
    expect(await running.ending).toMatchObject({ code: 'crashed', message: textWith('did not stop') });
    expect(await sleeping).toBe('cut off');
    await expect(own?.query('select 1')).rejects.toThrow();
    await expect(pool?.query('select 1')).rejects.toThrow();
    await allDisconnected();
    expect(await isFree(locks.singleton)).toBe(true);
    expect(await isFree(locks.drain)).toBe(true);
  });

  it('a scheduler whose stop hangs loses its connections as well, and a successor runs', async () => {
    const running = run(
      scheduled(() => ({ stop: never })),
      { limits: quick },
    );
    await isRunning(running);
    expect(await running.stop()).toMatchObject({ code: 'stopping', message: textWith('cut off') });
    const successor = run();
    await isRunning(successor);
  });
});

describe('scheduler of the built-in engine', () => {
  it('the engine’s own scheduler answers probes on the connection that holds its lock', async () => {
    const running = run(engine, { limits: { ...usualLimits, probeEveryMs: 50 } });
    await isRunning(running);
    await until('its other connections are closed', async () => (await connections()).length === 1 || undefined);
    // ten probes later it still runs
    expect(await within(500, running.ending)).toBeUndefined();
    expect(await running.stop()).toMatchObject({ code: 'stopping' });
  });
});
