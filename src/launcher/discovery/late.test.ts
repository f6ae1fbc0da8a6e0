/** Discoveries that are written late: changes that were made since the read stay, and get no event. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { type Database, discover, type DiscoveryRules, type KnownTenant, writeDiscovered } from './discovery.ts';

let control: ControlDatabase;
beforeEach(async () => {
  control = await makeControlDatabase();
});
afterEach(() => control.close());

const rules: DiscoveryRules = { discover: 'all', controlDatabase: 'control' };
const database = (oid: number, name: string): Database => ({ oid, name, template: false, connectable: true });

async function register(name: string, oid: number | null): Promise<KnownTenant> {
  const tenant = { id: newId(), name, database: name, databaseOid: oid, discovered: true, elsewhere: false };
  await control.db.exec(sql`
    insert into tenant (id, name, database, database_oid, discovered, created_at)
    values (${tenant.id}, ${name}, ${name}, ${oid}::oid, true, now())`);
  return tenant;
}

async function write(tenants: readonly KnownTenant[], databases: readonly Database[]): Promise<void> {
  const found = discover(tenants, databases, rules);
  await control.db.transaction((tx) => writeDiscovered(tx, found, new Date()));
}

const tenants = () =>
  control.db.rows<{ name: string; database: string; oid: number }>(sql`
    select name, database, database_oid as oid from tenant order by name`);
const events = () => control.db.rows<{ type: string }>(sql`select type from event where topic_id = 1 order by seq`);

describe('late discovery', () => {
  it('a tenant whose database was created again and recorded since is not forgotten', async () => {
    const [made, gone] = [await register('made', 1), await register('gone', 2)];
    await control.db.exec(sql`update tenant set database_oid = 3 where id = ${made.id}`);
    await write([made, gone], []);
    expect(await tenants()).toEqual([{ name: 'made', database: 'made', oid: 3 }]);
    expect(await events()).toEqual([{ type: 'tenant.gone' }]);
  });

  it('a tenant that was renamed since keeps its new name', async () => {
    const [one, other] = [await register('one', 1), await register('other', 2)];
    await control.db.exec(sql`update tenant set name = 'new', database = 'new' where id = ${one.id}`);
    await write([one, other], [database(1, 'between'), database(2, 'other2')]);
    expect(await tenants()).toEqual([
      { name: 'new', database: 'new', oid: 1 },
      { name: 'other2', database: 'other2', oid: 2 },
    ]);
    expect(await events()).toEqual([{ type: 'tenant.renamed' }]);
    // the same body as in the event of a command
    expect(await control.db.rows(sql`select body::jsonb as body from event where type = 'tenant.renamed'`)).toEqual([
      { body: { name: 'other2', from: 'other', to: 'other2', from_database: 'other', database: 'other2' } },
    ]);
  });

  it('a database oid that was recorded since is not overwritten', async () => {
    const one = await register('one', null);
    await control.db.exec(sql`update tenant set database_oid = 7 where id = ${one.id}`);
    await write([one], [database(5, 'one')]);
    expect(await tenants()).toEqual([{ name: 'one', database: 'one', oid: 7 }]);
  });

  it('a tenant that was dropped since gets no event', async () => {
    const one = await register('one', 1);
    await control.db.exec(sql`delete from tenant`);
    await write([one], []);
    expect(await events()).toEqual([]);
  });
});
