import { Client, type ClientBase } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FreshDatabase, makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { until } from '../../test/harness/until.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { clientConfig } from './address.ts';
import { withClient } from './databases.ts';
import { type Drained, drained, terminateHolders } from './drained.ts';
import { locks } from './locks.ts';
import { guardVersion, setUp } from './pool/pool.ts';

let tenant: FreshDatabase;
const clients: Client[] = [];
beforeEach(async () => {
  tenant = await makeInstalledTenant('1.0.0');
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => {})));
  await tenant.close();
});

async function connect(name: string): Promise<Client> {
  const client = new Client(clientConfig(tenant.address, name));
  client.on('error', () => {});
  clients.push(client);
  await client.connect();
  return client;
}

/** As any engine connects. */
async function engineConnection(version = '1.0.0'): Promise<Client> {
  const client = await connect('an engine');
  const guard = guardVersion(version);
  const rest = { schema: 'millrace', application: '', allowPooler: false } as const;
  await setUp(client, { address: tenant.address, ...rest, onOpen: guard });
  return client;
}

interface Attempt {
  readonly outcome: Promise<unknown>;
  readonly steps: string[];
  readonly who: () => Drained | undefined;
}

function attempt(graceMs: number, work: (client: ClientBase) => Promise<unknown>): Attempt {
  const steps: string[] = [];
  let who: Drained | undefined;
  const onBegin = async (begun: Drained): Promise<void> => {
    who = begun;
    steps.push('begin');
  };
  const outcome = connect('a migration').then((client) =>
    drained(client, { onBegin, graceMs }, (inner) => {
      steps.push('granted');
      return work(inner);
    }),
  );
  outcome.catch(() => {});
  return { outcome, steps, who: () => who };
}

const bump = (client: ClientBase): Promise<unknown> =>
  client.query(`update millrace.installation set version = '2.0.0'`);
const ask = <T>(query: ReturnType<typeof sql>): Promise<T[]> =>
  withClient(tenant.address, (client) => onClient(client).rows(query)) as Promise<T[]>;
const version = async (): Promise<string | undefined> =>
  (await ask<{ version: string }>(sql`select version from millrace.installation`))[0]?.version;
const drainers = (granted: boolean) => async (): Promise<true | undefined> =>
  (
    await ask(sql`
      select 1 from pg_locks
       where locktype = 'advisory' and classid = ${locks.drain[0]} and objid = ${locks.drain[1]} and objsubid = 2
         and mode = 'ExclusiveLock' and granted = ${granted}
         and database = (select oid from pg_database where datname = current_database())`)
  ).length > 0 || undefined;
const alive = (client: Client): Promise<boolean> =>
  client.query('select 1').then(
    () => true,
    () => false,
  );

describe('a drained transaction (I6)', () => {
  it('tells who it is, then waits until no connection of any engine is left', async () => {
    const [first, second] = [await engineConnection(), await engineConnection()];
    const { outcome, steps, who } = attempt(30_000, bump);
    await until('it waits', drainers(false));
    expect(steps).toEqual(['begin']);
    const [backend] = await ask<{ pid: number }>(
      sql`select pid from pg_stat_activity where application_name = 'a migration' and datname = current_database()`,
    );
    expect(who()?.pid).toBe(backend?.pid);
    await first.end();
    await until('it waits for the other', drainers(false));
    expect(steps).toEqual(['begin']);
    await second.end();
    await outcome;
    expect(await version()).toBe('2.0.0');
    expect(await ask(sql`select pg_xact_status(${who()?.xid}::text::xid8) as status`)).toEqual([
      { status: 'committed' },
    ]);
  });

  it('terminates those who are still there after the grace period, and keeps what it has done so far', async () => {
    const engine = await engineConnection();
    const { outcome } = attempt(200, bump);
    await outcome;
    expect(await alive(engine)).toBe(false);
    expect(await version()).toBe('2.0.0');
  });

  it('leaves a newcomer alone, who waits for the end and then sees what was recorded', async () => {
    let finish = (): void => {};
    const work = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { outcome } = attempt(100, async (client) => {
      await bump(client);
      await work;
    });
    await until('it is granted', drainers(true));
    const newcomer = engineConnection();
    await until('the newcomer waits', async () => {
      const waiting = await ask(sql`
        select 1 from pg_stat_activity
         where application_name = 'an engine' and wait_event = 'advisory' and datname = current_database()`);
      return waiting.length > 0 || undefined;
    });
    // listened to from now on: it may be refused before the outcome is here
    const refused = expect(newcomer).rejects.toMatchObject({ name: 'VersionMismatch', recorded: '2.0.0' });
    finish();
    await outcome;
    await refused;
  });

  it('that fails changes nothing and lets the next one in', async () => {
    const { outcome } = attempt(100, async (client) => {
      await bump(client);
      throw new Error('no');
    });
    await expect(outcome).rejects.toThrow('no');
    expect(await version()).toBe('1.0.0');
    expect(await alive(await engineConnection())).toBe(true);
  });

  it('whose backend is killed changes nothing and lets the next one in', async () => {
    const { outcome, who } = attempt(100, async (client) => {
      await bump(client);
      await ask(sql`select pg_terminate_backend(${who()?.pid ?? 0}::integer)`);
      await client.query('select pg_sleep(10)');
    });
    await expect(outcome).rejects.toThrow();
    expect(await version()).toBe('1.0.0');
    expect(await alive(await engineConnection())).toBe(true);
  });

  it('comes one after the other, though two begin at once', async () => {
    const running: string[] = [];
    const work = (name: string) => async (client: ClientBase) => {
      running.push(`${name} begins`);
      await client.query('select pg_sleep(0.1)');
      running.push(`${name} ends`);
    };
    await Promise.all([attempt(1_000, work('a')).outcome, attempt(1_000, work('b')).outcome]);
    const [first = ''] = running[0]?.split(' ') ?? [];
    const second = first === 'a' ? 'b' : 'a';
    expect(running).toEqual([`${first} begins`, `${first} ends`, `${second} begins`, `${second} ends`]);
  });
});

describe('connections of engines', () => {
  it('that our role may not end are left and named, and raise nothing; those that it may are ended', async () => {
    const engine = await engineConnection();
    const { pid } = await onClient(engine).one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    const role = `limited_${tenant.address.database}`;
    const client = await connect('a launcher');
    const db = onClient(client);
    await client.query(`create role ${role}; set role ${role}`);
    expect(await terminateHolders(db)).toEqual({ ended: [], left: [pid] });
    await client.query(`reset role; grant pg_signal_backend to ${role}; set role ${role}`);
    expect(await terminateHolders(db), 'a superuser’s').toEqual({ ended: [], left: [pid] });
    await engine.query('select 1');
    await client.query(`reset role; drop role ${role}`);
    expect(await terminateHolders(db)).toEqual({ ended: [pid], left: [] });
    await expect(engine.query('select 1')).rejects.toThrow();
  });

  it('that nobody can make leave are all who is named when a migration gives up', async () => {
    const engine = await engineConnection();
    const { pid } = await onClient(engine).one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    const role = `limited_${tenant.address.database}`;
    const client = await connect('a migration');
    await client.query(`create role ${role}; set role ${role}`);
    const stuck = drained(client, { onBegin: async () => {}, graceMs: 50 }, bump);
    await expect(stuck).rejects.toMatchObject({
      code: 'tenant_unavailable',
      message: `connections of engines do not leave (of another role, which ours may not end: backends ${pid}); nothing was changed`,
    });
    await client.query(`reset role; drop role ${role}`);
  });
});
