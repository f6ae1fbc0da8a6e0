import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Client } from 'pg';
import { textWith } from '../../test/harness/expected.ts';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import {
  engineOf,
  eventsOf,
  inDatabase,
  makeTestLife,
  messagesAbout,
  type TestLife,
} from '../../test/harness/tenant-life.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { clientConfig } from '../postgres/address.ts';
import { look } from '../loader/inspect.ts';
import { createTenant } from './create.ts';
import { databaseNamed, findLifeRow, insertTenant } from './queries.ts';

const broken = engineOf('8.0.0', ['select 1 / 0']);
const actor = 'key:ann';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, broken]);
});
afterAll(() => life.close());

const versionIn = (name: string): ReturnType<typeof look> => look(life.addressOf(rowOf(name)), 1_000);
const rowOf = (name: string) => ({ id: newId(), name, database: name, desired: 'on' }) as const;

describe('new tenant', () => {
  it('a new tenant has a row, a UTF8 database with Millrace, a RESTART that waited for it, and an event', async () => {
    const name = life.name();
    const { tenantId, message } = await createTenant(life, { name, actor, ownHost: true });
    expect(message).toMatchObject({
      kind: 'restart',
      cause: `install ${engineVersion}`,
      sender: actor,
      outcome: 'started',
    });
    expect(message.xid).not.toBeNull();
    const row = await findLifeRow(life.control, name);
    const there = await databaseNamed(life.control, name);
    expect(row).toMatchObject({ id: tenantId, database: name, desired: 'on', discovered: false, ownHost: true });
    expect(row?.databaseOid).toBe(there?.oid);
    expect(await versionIn(name)).toEqual({ kind: 'installed', version: engineVersion });
    const encoding = await life.control.one(sql`
      select pg_encoding_to_char(encoding) as encoding from pg_database where datname = ${name}`);
    expect(encoding).toEqual({ encoding: 'UTF8' });
    expect(await eventsOf(life, name)).toEqual(['tenant.created']);
  });

  it('a new tenant may have a database of another name', async () => {
    const [name, database] = [life.name(), life.name()];
    await createTenant(life, { name, database, actor });
    expect(await findLifeRow(life.control, name)).toMatchObject({ name, database });
    expect(await databaseNamed(life.control, name)).toBeUndefined();
  });

  it('creating is refused if the tenant or database exists, and changes nothing', async () => {
    const [name, other] = [life.name(), life.name()];
    await createTenant(life, { name, actor });
    await expect(createTenant(life, { name, actor })).rejects.toMatchObject({ code: 'conflict' });
    await expect(createTenant(life, { name, database: other, actor })).rejects.toThrow(`in the database ${name}`);
    await expect(createTenant(life, { name: other, database: name, actor })).rejects.toThrow(
      `the database ${name} belongs to tenant ${name}; name another`,
    );
    expect(await findLifeRow(life.control, other)).toBeUndefined();
    expect(await messagesAbout(life, name)).toHaveLength(1);
  });

  it('creating proposes to adopt a database that exists but is not registered', async () => {
    const [name, database] = [life.name(), life.name()];
    await administer(serverAddress(), `create database ${database}`);
    const refused = (): Promise<unknown> => createTenant(life, { name, database, actor });
    await expect(refused()).rejects.toThrow(`: millrace tenant adopt ${name} --database ${database}`);
    const found = { id: newId(), name: database, database, ownHost: false, at: new Date() };
    await insertTenant(life.control, found);
    await life.control.exec(sql`update tenant set discovered = true where id = ${found.id}`);
    await expect(refused()).rejects.toThrow(`: millrace tenant adopt ${name} --database ${database}`);
    await expect(createTenant(life, { name: database, actor })).rejects.toThrow(`: millrace tenant adopt ${database}`);
    await administer(serverAddress(), `alter database ${database} with allow_connections false`);
    await expect(refused()).rejects.toThrow('already; name another');
  });

  it.each(['postgres', 'template1'])('a new tenant never gets the database %s', async (database) => {
    const refused = createTenant(life, { name: life.name(), database, actor });
    await expect(refused).rejects.toMatchObject({ code: 'bad_request', faults: [{ path: 'body.database' }] });
  });

  it('a new tenant never gets the control database, nor an engine that is not installed', async () => {
    const { database } = life.controlAddress;
    await expect(createTenant(life, { name: database, actor })).rejects.toThrow('it is the control database');
    const refused = createTenant(life, { name: life.name(), version: '7.7.7', actor });
    await expect(refused).rejects.toMatchObject({ faults: [{ path: 'body.version' }] });
    await expect(refused).rejects.toThrow(`engine 7.7.7 is not here, only ${engineVersion}, 8.0.0`);
  });
});

describe('interrupted creation', () => {
  const at = new Date();
  it('creating again completes a tenant of which only the row, or row and database, exist', async () => {
    const [rowOnly, withDatabase] = [life.name(), life.name()];
    for (const name of [rowOnly, withDatabase])
      await insertTenant(life.control, { id: newId(), name, database: name, ownHost: false, at });
    await inDatabase(life, 'postgres', (_, client) => client.query(`create database ${withDatabase}`));
    for (const name of [rowOnly, withDatabase]) {
      expect((await createTenant(life, { name, actor })).message.outcome).toBe('started');
      expect(await versionIn(name)).toEqual({ kind: 'installed', version: engineVersion });
      expect((await findLifeRow(life.control, name))?.databaseOid).toBe((await databaseNamed(life.control, name))?.oid);
    }
  });

  it('creating refuses a tenant whose drop was interrupted, and advises to drop it', async () => {
    const name = life.name();
    await insertTenant(life.control, { id: newId(), name, database: name, ownHost: false, at });
    await life.control.exec(sql`update tenant set desired = 'off', leaving = 'on' where name = ${name}`);
    await expect(createTenant(life, { name, actor })).rejects.toMatchObject({
      code: 'conflict',
      message: textWith(`\`millrace tenant drop ${name}\` completes the drop`),
    });
    expect(await databaseNamed(life.control, name)).toBeUndefined();
    expect(await messagesAbout(life, name)).toEqual([]);
  });

  it('two concurrent calls create a tenant once', async () => {
    const name = life.name();
    const results = await Promise.allSettled([1, 2].map(() => createTenant(life, { name, actor })));
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await eventsOf(life, name)).toEqual(['tenant.created']);
    expect(await messagesAbout(life, name)).toHaveLength(1);
  });
});

describe('failed installation', () => {
  it('a failed installation leaves nothing but its events', async () => {
    const name = life.name();
    const failed = createTenant(life, { name, version: broken.version, actor });
    await expect(failed).rejects.toMatchObject({ code: 'migration_failed' });
    await expect(failed).rejects.toThrow(/_more\.sql failed: division by zero/);
    expect(await findLifeRow(life.control, name)).toBeUndefined();
    expect(await databaseNamed(life.control, name)).toBeUndefined();
    expect(await eventsOf(life, name)).toEqual(['tenant.created', 'tenant.creation_failed']);
    await createTenant(life, { name, actor });
  });

  it('a failed installation keeps a database that has other sessions, and the next call completes it', async () => {
    const name = life.name();
    const guest = new Client(clientConfig(life.addressOf(rowOf(name)), 'a guest'));
    guest.on('error', () => {});
    const entering = {
      ...broken,
      migrate: async () => Promise.reject(await guest.connect().then(() => new Error('no'))),
    };
    const engines = { ...life.engines, find: async () => ({ ok: true, engine: entering }) as const };
    try {
      await expect(createTenant({ ...life, engines }, { name, actor })).rejects.toThrow('no');
      expect(await findLifeRow(life.control, name)).toMatchObject({ name });
      expect(await databaseNamed(life.control, name)).toBeDefined();
    } finally {
      await guest.end();
    }
    expect((await createTenant(life, { name, actor })).message.outcome).toBe('started');
  });

  it('the error names the statement to run if the role may not create databases, and no row stays', async () => {
    const [name, role] = [life.name(), life.name()];
    await administer(serverAddress(), `create role ${role} login`);
    try {
      const url = new URL(life.controlAddress.url);
      url.searchParams.set('options', `-c role=${role}`);
      const limited = { ...life, controlAddress: { ...life.controlAddress, url: url.href } };
      await administer(life.controlAddress, `grant usage on schema control to ${role}`);
      await expect(createTenant(limited, { name, actor })).rejects.toThrow(`run: create database "${name}"`);
      expect(await findLifeRow(life.control, name)).toBeUndefined();
    } finally {
      await administer(life.controlAddress, `drop owned by ${role}`);
      await administer(serverAddress(), `drop role ${role}`);
    }
  });
});
