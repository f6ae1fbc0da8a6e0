/** Steps of tenant life during which another session changes the tenant, between the inspection and the step's own change. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
import { append, tenantTopic } from '../events/append.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { inDrained } from './drained-work.ts';
import { look } from '../loader/inspect.ts';
import { adoptTenant } from './adopt.ts';
import { createTenant } from './create.ts';
import type { Life } from './life.ts';
import { databaseNamed, findLifeRow, setDesired } from './queries.ts';
import { releaseTenant } from './release.ts';
import { renameTenant } from './rename.ts';
import { upgradeTenant } from './upgrade.ts';

const actor = 'key:ann';
const newer = engineOf('2.0.0', ['create table more (a integer)']);
let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, newer]);
});
afterAll(() => life.close());

const onServer = (statement: string): Promise<unknown> => administer(serverAddress(), statement);
const addressIn = (database: string) => life.addressOf({ id: newId(), name: database, database, desired: 'on' });

async function make(): Promise<string> {
  const name = life.name();
  await createTenant(life, { name, actor });
  return name;
}

/** A database without Millrace, listed as a discovered tenant. */
async function discovered(): Promise<string> {
  const name = life.name();
  await onServer(`create database ${name}`);
  await life.control.exec(sql`
    insert into tenant (id, name, database, database_oid, discovered, created_at)
    select ${newId()}, datname, datname, oid, true, clock_timestamp() from pg_database where datname = ${name}`);
  return name;
}

/** Calls `happens` when an engine is looked up: after the inspection, before the change. */
function meanwhile(happens: () => Promise<unknown>): Life {
  const find: Life['engines']['find'] = async (version) => {
    await happens();
    return life.engines.find(version);
  };
  return { ...life, engines: { ...life.engines, find } };
}

describe('concurrent adoption', () => {
  it('an adoption of a database that has just been adopted is refused, and changes nothing', async () => {
    const [database, first, second] = [await discovered(), life.name(), life.name()];
    const forestalled = meanwhile(() => adoptTenant(life, { name: first, database, ownHost: true, actor }));
    await expect(adoptTenant(forestalled, { name: second, database, actor })).rejects.toMatchObject({
      code: 'conflict',
      message: `tenant ${second} or its database has just been changed; try again`,
    });
    expect(await findLifeRow(life.control, first)).toMatchObject({ database, discovered: false, ownHost: true });
    expect(await findLifeRow(life.control, second)).toBeUndefined();
  });

  it('an adoption that fails does not undo a change that was made meanwhile', async () => {
    const [database, name] = [await discovered(), life.name()];
    const migrate = async () => {
      await setDesired(life.control, (await findLifeRow(life.control, name))?.id ?? '', 'off');
      throw new Error('it cannot be installed');
    };
    const engines = { ...life.engines, find: async () => ({ ok: true, engine: { ...engine, migrate } }) as const };
    await expect(adoptTenant({ ...life, engines }, { name, database, actor })).rejects.toThrow('cannot be installed');
    expect(await findLifeRow(life.control, name)).toMatchObject({ desired: 'off', discovered: false });
  });
});

describe('concurrent rename', () => {
  it('renaming renames the tenant’s own database, not another one that now has its name', async () => {
    const [name, moved, to] = [await make(), life.name(), life.name()];
    await onServer(`alter database ${name} rename to ${moved}`);
    await onServer(`create database ${name}`);
    await renameTenant(life, name, { name: to, actor });
    expect(await findLifeRow(life.control, to)).toMatchObject({
      database: moved,
      databaseOid: (await databaseNamed(life.control, moved))?.oid,
    });
    expect(await databaseNamed(life.control, name)).toBeDefined();
    expect(await databaseNamed(life.control, to)).toBeUndefined();
  });

  it('a rename of a tenant whose database is gone is refused, and the error says what to do', async () => {
    const [name, to] = [await make(), life.name()];
    await onServer(`drop database ${name} with (force)`);
    await expect(renameTenant(life, name, { name: to, actor })).rejects.toMatchObject({
      code: 'conflict',
      message: `the database ${name} of tenant ${name} does not exist; \`millrace tenant drop ${name}\` removes the tenant`,
    });
    expect(await findLifeRow(life.control, name)).toMatchObject({ name, database: name });
  });

  it('a rename that PostgreSQL refuses is a conflict with PostgreSQL’s message', async () => {
    const [name, to, role] = [await make(), life.name(), life.name()];
    await onServer(`create role ${role} login createdb`);
    try {
      await administer(
        life.controlAddress,
        `grant usage on schema control to ${role}; grant select, insert, update on all tables in schema control to ${role}`,
      );
      const url = new URL(life.controlAddress.url);
      url.searchParams.set('options', `-c role=${role}`);
      const limited = { ...life, controlAddress: { ...life.controlAddress, url: url.href } };
      await expect(renameTenant(limited, name, { name: to, actor })).rejects.toMatchObject({
        code: 'conflict',
        message: `the database ${name} was not renamed: must be owner of database ${name}`,
      });
      expect(await findLifeRow(life.control, name)).toMatchObject({ name, database: name });
    } finally {
      await administer(life.controlAddress, `drop owned by ${role}`);
      await onServer(`drop role ${role}`);
    }
  });
});

it('an upgrade that the launcher has already recorded as an event is not recorded again', async () => {
  const name = await make();
  const { id } = (await findLifeRow(life.control, name)) ?? { id: '' };
  const recorded = {
    type: 'tenant.version_changed',
    subject: id,
    body: { name, from: engineVersion, to: newer.version },
  };
  const seen: Life = {
    ...life,
    engines: {
      ...life.engines,
      find: async () => ({
        ok: true,
        engine: {
          ...newer,
          migrate: async (client) => {
            await life.control.transaction((tx) => append(tx, tenantTopic, [recorded], { actor, at: new Date() }));
            return newer.migrate(client);
          },
        },
      }),
    },
  };
  await upgradeTenant(seen, name, { to: newer.version, actor });
  expect(await eventsOf(life, name)).toEqual(['tenant.created', 'tenant.version_changed']);
});

describe('database that has taken the name of a tenant’s database', () => {
  /** A tenant whose database `swap` renames and replaces by a copy. */
  async function replaced(): Promise<{ readonly name: string; readonly swap: () => Promise<void> }> {
    const [name, moved] = [await make(), life.name()];
    const swap = async (): Promise<void> => {
      await onServer(`alter database ${name} rename to ${moved}`);
      await onServer(`create database ${name} template ${moved}`);
    };
    return { name, swap };
  }

  it('drained work for the tenant does not touch the other database', async () => {
    const { name, swap } = await replaced();
    const row = await findLifeRow(life.control, name);
    if (row === undefined) throw new Error('no row');
    await swap();
    let began = false;
    const hooks = { onBegin: async () => {}, remind: () => {} };
    const work = inDrained(life.addressOf(row), hooks, async () => {
      began = true;
    });
    await expect(work).rejects.toMatchObject({ code: '3D000' });
    expect(began).toBe(false);
  });

  it('the other database is neither upgraded nor released', async () => {
    const { name, swap } = await replaced();
    let looked = 0;
    // the inspection gets an address without the oid; the following steps notice that the database is another one
    const swapping: Life = {
      ...life,
      addressOf: (row) => {
        looked += 1;
        return looked === 1 ? addressIn(row.database) : life.addressOf(row);
      },
    };
    await swap();
    await expect(upgradeTenant(swapping, name, { to: newer.version, actor })).rejects.toMatchObject({
      code: 'conflict',
      message: `tenant ${name} was not changed: database "${name}" is another one now`,
    });
    looked = 0;
    await expect(releaseTenant(swapping, name, { actor })).rejects.toMatchObject({ code: 'conflict' });
    expect(await look(addressIn(name), 1_000)).toEqual({ kind: 'installed', version: engineVersion });
    expect((await messagesAbout(life, name)).map(({ cause }) => cause)).toEqual([`install ${engineVersion}`]);
  });

  it('`create` does not complete the other database; if there is no database, it creates one', async () => {
    const name = await make();
    await onServer(`drop database ${name} with (force)`);
    await onServer(`create database ${name}`);
    await expect(createTenant(life, { name, actor })).rejects.toThrow(`\`millrace tenant drop ${name}\``);
    await inDatabase(life, name, async (db) => {
      expect(await db.one(sql`select to_regnamespace('millrace') as schema`)).toEqual({ schema: null });
    });
    await onServer(`drop database ${name} with (force)`);
    await createTenant(life, { name, actor });
    const there = await databaseNamed(life.control, name);
    expect(await findLifeRow(life.control, name)).toMatchObject({ databaseOid: there?.oid });
    expect(await look(addressIn(name), 1_000)).toEqual({ kind: 'installed', version: engineVersion });
  });
});
