import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlDatabase, freshAddress, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import { readConfig } from '../config.ts';
import { defaultTenant } from '../contract/tenants.ts';
import { engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { look } from '../launcher/look.ts';
import { databaseNamed } from '../launcher/life/queries.ts';
import { prepareDatabases } from './installation.ts';

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

it('the default tenant stays in the database that it has, though that was renamed: a start makes no other', async () => {
  const [before, after] = [freshAddress(), freshAddress()];
  const [name, renamed] = [before.address.database, after.address.database];
  try {
    await administer(serverAddress(), `create database ${name}`);
    await control.db.exec(sql`
      insert into tenant (id, name, database, database_oid, created_at)
      select ${newId()}, ${defaultTenant}, datname, oid, clock_timestamp() from pg_database where datname = ${name}`);
    await administer(serverAddress(), `alter database ${name} rename to ${renamed}`);
    for (let starts = 0; starts < 2; starts++)
      await prepareDatabases(readConfig({ MILLRACE_HOME: home }), control.address);
    expect(await look(after.address, 1_000)).toEqual({ kind: 'installed', version: engineVersion });
    expect(await databaseNamed(control.db, name)).toBeUndefined();
    expect(await control.db.exec(sql`select from tenant`)).toBe(1);
  } finally {
    await before.close();
    await after.close();
  }
});
