/** Upgrades and releases while another session has tables of the tenant open: how long they wait, and which session they name. */
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  addressIn,
  engineOf,
  eventsOf,
  holdDrain,
  inDatabase,
  makeTestLife,
  messagesAbout,
  type TestLife,
} from '../../test/harness/tenant-life.ts';
import { until } from '../../test/harness/until.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { pause } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { clientConfig } from '../postgres/address.ts';
import { look } from '../loader/inspect.ts';
import { adviseWaiting, type Blocker, blockersOf } from '../control/blockers.ts';
import { createTenant } from './create.ts';
import { findLifeRow } from './queries.ts';
import { releaseTenant } from './release.ts';
import { upgradeTenant } from './upgrade.ts';

const actor = 'key:ann';
const newer = engineOf('2.0.0', ['create table more (a integer); alter table job add column more integer']);
let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, newer], { lockMs: 3_000 });
});
afterAll(() => life.close());

async function make(): Promise<string> {
  const name = life.name();
  await createTenant(life, { name, actor });
  return name;
}
const addressOf = (name: string) => addressIn(life, name);
const version = (name: string) => look(addressOf(name), 1_000);
const upgrade = (name: string, over: Partial<TestLife> = {}) =>
  upgradeTenant({ ...life, ...over }, name, { to: newer.version, actor });

interface Reader {
  readonly client: Client;
  readonly pid: number;
  readonly since: string;
}

/** A session that is not Millrace's, with an open transaction that has read a table. */
async function reading(name: string, table = 'millrace.job'): Promise<Reader> {
  const client = new Client(clientConfig(addressOf(name), 'a report'));
  client.on('error', () => {});
  await client.connect();
  await client.query(`begin; select count(*) from ${table}`);
  const { rows } = await client.query<{ pid: number; since: Date }>('select pg_backend_pid() as pid, now() as since');
  return { client, pid: rows[0]?.pid ?? 0, since: rows[0]?.since.toISOString() ?? '' };
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('upgrade behind an open reader', () => {
  it('an upgrade gives up, names exactly the sessions that have tables open, and changes nothing', async () => {
    const name = await make();
    const { client, pid, since } = await reading(name);
    const { rows: roles } = await client.query<{ role: string }>('select current_user as role');
    await inDatabase(life, name, (_, other) =>
      other.query(`begin; select count(*) from millrace.job; prepare transaction '${name}''s'`),
    );
    const elsewhere = await reading(name, 'pg_class');
    // a connection of an engine, which leaves before the migration
    const holder = await holdDrain(addressOf(name), life.hub);
    const failing = failureOf(upgrade(name));
    await until('it waits', () => holders(name).then(([first]) => first));
    await pause(1_000);
    // waits behind the upgrade, and continues when that has ended
    const behind = reading(name);
    const failure = await failing;
    expect(failure).toMatchObject({ code: 'conflict' });
    const { message } = failure as Error;
    const role = roles[0]?.role;
    expect(message).toContain(
      `migration ${newer.all.at(-1)?.name} failed: a lock was not granted within 3 s, and nothing was changed; tables of the schema millrace are held by `,
    );
    expect(message).toContain(`backend ${pid} (a report, role ${role}, in a transaction since ${since})`);
    expect(message).toMatch(
      new RegExp(`prepared transaction '${name}''s' \\(role ${role}, in a transaction since \\d{4}-`),
    );
    expect(message).toContain(`select pg_terminate_backend(${pid})`);
    expect(message).toContain(`rollback prepared '${name}''s'`);
    expect(message).toMatch(/or try again later$/);
    expect(message.match(/backend \d+/g)).toEqual([`backend ${pid}`]);
    await holder.ended;
    expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
    expect((await eventsOf(life, name)).at(-1)).toBe('tenant.upgrade_failed');
    await inDatabase(life, name, (_, other) => other.query(`rollback prepared '${name}''s'`));
    await Promise.all([client.end(), elsewhere.client.end(), (await behind).client.end()]);
    await upgrade(name);
    expect(await version(name)).toEqual({ kind: 'installed', version: newer.version });
  });

  it('an upgrade lets the tenant run until the reader is done, then continues', async () => {
    const name = await make();
    const { client } = await reading(name);
    const engines = await holdDrain(addressOf(name), life.hub);
    const upgrading = upgrade(name, { lockMs: 60_000 });
    await pause(3_000);
    expect(engines.isAlive()).toBe(true);
    expect((await messagesAbout(life, name)).map(({ cause }) => cause)).not.toContain(`upgrade to ${newer.version}`);
    await client.query('commit');
    await upgrading;
    await engines.ended;
    expect(await version(name)).toEqual({ kind: 'installed', version: newer.version });
    await client.end();
  });

  it('a waiting upgrade names the sessions that it waits for', async () => {
    const name = await make();
    const { client, pid } = await reading(name);
    await inDatabase(life, name, (_, other) =>
      other.query(`begin; select count(*) from millrace.job; prepare transaction '${name}'`),
    );
    const upgrading = upgrade(name, { lockMs: 5_000 });
    const found = await until('it waits', async () => {
      const all = await holders(name);
      return all.length > 0 ? all : undefined;
    });
    expect(found.map((each) => each.pid ?? each.gid)).toEqual([pid, name]);
    expect(adviseWaiting(1, found)).toMatch(
      new RegExp(`^it waits for locks of backend ${pid} \\(a report, .*\\), prepared transaction '${name}' \\(`),
    );
    await inDatabase(life, name, (_, other) => other.query(`rollback prepared '${name}'`));
    await client.end();
    await upgrading;
    expect(await holders(name)).toEqual([]);
  });
});

async function holders(name: string): Promise<Blocker[]> {
  const row = await findLifeRow(life.control, name);
  return (await blockersOf(life.control, row?.id ?? '')).filter(({ what }) => what === 'holder');
}

it('a migration that waits for engines to leave has no lock holders to name', async () => {
  const name = await make();
  const deaf = await holdDrain(addressOf(name));
  const row = await findLifeRow(life.control, name);
  await inDatabase(life, name, async (_, client) => {
    const waiting = client.query('begin; select millrace.begin_migration()');
    await until('it waits', async () => (await blockersOf(life.control, row?.id ?? ''))[0]);
    expect(await holders(name)).toEqual([]);
    await deaf.close();
    await waiting;
  });
});

it('a release behind an open reader gives up as well', async () => {
  const name = await make();
  const { client, pid } = await reading(name);
  await expect(releaseTenant(life, name, { actor })).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringMatching(new RegExp(`^a lock was not granted within.*backend ${pid} \\(a report`)) as unknown,
  });
  expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
  await client.end();
});

it('a migration that another one keeps from beginning gives up', async () => {
  const name = await make();
  await inDatabase(life, name, async (db, client) => {
    // without `drain`, which the inspection before would notice
    await client.query('begin; select pg_advisory_xact_lock(7345, 2)');
    await expect(upgrade(name)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('another migration of this database is under way') as unknown,
    });
    expect(await db.one(sql`select version from millrace.installation`)).toEqual({ version: engineVersion });
  });
});
