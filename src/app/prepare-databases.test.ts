import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ControlDatabase, freshAddress, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import { session } from '../../test/harness/launching.ts';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import { readConfig } from '../config.ts';
import { defaultTenant } from '../contract/tenants.ts';
import { engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { type Log, silent } from '../kernel/log.ts';
import { sql } from '../kernel/sql.ts';
import { look } from '../loader/inspect.ts';
import { databaseNamed } from '../tenants/queries.ts';
import { prepareDatabases } from './prepare-databases.ts';

let control: ControlDatabase;
let home: string;
beforeAll(async () => {
  control = await makeControlDatabase();
  home = await mkdtemp(join(tmpdir(), 'millrace-installation-'));
});
afterAll(async () => {
  await control.close();
  await rm(home, { recursive: true });
});

it('the default tenant keeps its database after a rename: a start creates no other one', async () => {
  const [before, after] = [freshAddress(), freshAddress()];
  const [name, renamed] = [before.address.database, after.address.database];
  try {
    await administer(serverAddress(), `create database ${name}`);
    await control.db.exec(sql`
      insert into tenant (id, name, database, database_oid, created_at)
      select ${newId()}, ${defaultTenant}, datname, oid, clock_timestamp() from pg_database where datname = ${name}`);
    await administer(serverAddress(), `alter database ${name} rename to ${renamed}`);
    for (let starts = 0; starts < 2; starts++)
      await prepareDatabases(readConfig({ MILLRACE_HOME: home }), control.address, { log: silent });
    expect(await look(after.address, 1_000)).toEqual({ kind: 'installed', version: engineVersion });
    expect(await databaseNamed(control.db, name)).toBeUndefined();
    expect(await control.db.exec(sql`select from tenant`)).toBe(1);
  } finally {
    await before.close();
    await after.close();
  }
});

describe('installation with a known default tenant', () => {
  const place = freshAddress();
  const { database } = place.address;
  let warnings: string[];
  const warn = (_: object, text: string): void => {
    warnings.push(text);
  };
  const log: Log = { ...silent, warn: warn as Log['warn'] };
  const start = (env: NodeJS.ProcessEnv = {}): Promise<void> =>
    prepareDatabases(readConfig({ MILLRACE_HOME: home, ...env }), control.address, { log, onUpgrade: () => {} });

  beforeAll(async () => {
    await administer(serverAddress(), `create database ${database}`);
    await control.db.exec(sql`
      insert into tenant (id, name, database, database_oid, created_at)
      select ${newId()}, ${defaultTenant}, datname, oid, clock_timestamp() from pg_database where datname = ${database}
      on conflict (name) do update set database = excluded.database, database_oid = excluded.database_oid`);
    await start();
  });
  beforeEach(() => (warnings = []));
  afterAll(() => place.close());

  it('an installation starts although another session has locked the tables of its default tenant', async () => {
    const otherSession = await session(place.address);
    await otherSession.query('begin; lock table millrace.installation');
    await start();
    expect(warnings).toEqual([expect.stringContaining('starting without it')]);
    await otherSession.end();
  });

  it('an installation starts although the database of its default tenant accepts no connections', async () => {
    await administer(serverAddress(), `alter database ${database} allow_connections false`);
    try {
      await start();
    } finally {
      await administer(serverAddress(), `alter database ${database} allow_connections true`);
    }
    expect(warnings).toHaveLength(1);
  });

  it('an installation starts although the server of its default tenant is unreachable', async () => {
    await start({ MILLRACE_DEFAULT_DATABASE_URL: 'postgres://127.0.0.1:1/elsewhere' });
    expect(warnings).toHaveLength(1);
  });

  it('an installation starts without a warning while a migration of its default tenant is under way', async () => {
    const otherSession = await session(place.address);
    await otherSession.query('begin; select millrace.begin_migration()');
    await start();
    expect(warnings).toEqual([]);
    await otherSession.end();
  });
});

it('a missing database of the default tenant is replaced by an empty one, with a warning', async () => {
  const place = freshAddress();
  const warnings: string[] = [];
  const warn = (_: object, text: string): void => {
    warnings.push(text);
  };
  await control.db.exec(sql`
    insert into tenant (id, name, database, database_oid, created_at)
    values (${newId()}, ${defaultTenant}, ${place.address.database}, 999999999, clock_timestamp())
    on conflict (name) do update set database = excluded.database, database_oid = excluded.database_oid`);
  try {
    const log: Log = { ...silent, warn: warn as Log['warn'] };
    await prepareDatabases(readConfig({ MILLRACE_HOME: home }), control.address, { log });
    expect(await look(place.address, 1_000)).toEqual({ kind: 'installed', version: engineVersion });
    expect(warnings).toEqual([expect.stringContaining('created an empty one')]);
  } finally {
    await place.close();
  }
});

it('the first start fails without the default tenant', async () => {
  const first = await makeControlDatabase();
  const env = { MILLRACE_HOME: home, MILLRACE_DEFAULT_DATABASE_URL: 'postgres://127.0.0.1:1/elsewhere' };
  try {
    await expect(prepareDatabases(readConfig(env), first.address, { log: silent })).rejects.toThrow(
      /127.0.0.1:1|ECONNREFUSED/,
    );
  } finally {
    await first.close();
  }
});
