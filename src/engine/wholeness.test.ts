/** An engine does not start on an incomplete schema, such as one that is being restored. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { withClient } from '../postgres/databases.ts';
import { engine } from './engine.ts';
import { ownSchemaSource } from '../postgres/schema-source.ts';
import { indexesAndKeys, tables } from './wholeness.ts';

let tenant: Awaited<ReturnType<typeof makeInstalledTenant>>;
beforeAll(async () => {
  tenant = await makeInstalledTenant();
});
afterAll(() => tenant.close());

it('the check lists all tables, indexes, keys and functions that an installation creates', () =>
  withClient(tenant.address, async (client) => {
    const { rows } = await client.query<{ name: string }>(`
      with relation as (
        select oid from pg_class where relnamespace = to_regnamespace('millrace') and not relispartition)
      select relname as name from pg_class join pg_index on indexrelid = oid where indrelid in (table relation)
      union all
      select conname from pg_constraint where conrelid in (table relation) and contype = 'f'`);
    expect(rows.map(({ name }) => name).toSorted()).toEqual([...indexesAndKeys].toSorted());
    const { rows: others } = await client.query<{ kind: string; name: string }>(`
      select 'function' as kind, proname as name from pg_proc where pronamespace = to_regnamespace('millrace')
      union all
      select 'table', relname from pg_class
       where relnamespace = to_regnamespace('millrace') and relkind in ('r', 'p') and not relispartition`);
    const listNames = (wanted: string) => others.filter(({ kind }) => kind === wanted).map(({ name }) => name);
    const { functions } = await ownSchemaSource('tenant');
    expect(listNames('function').toSorted()).toEqual([...(functions?.names ?? [])].toSorted());
    expect(listNames('table').toSorted()).toEqual([...tables].toSorted());
  }));

it('a schema with further event partitions and additional indexes is complete', () =>
  withClient(tenant.address, async (client) => {
    await client.query('begin; set local search_path to millrace');
    await client.query('select add_event_partition(7)');
    await client.query('create index own on job (name)');
    expect(await engine.pending(client)).toEqual([]);
    await client.query('rollback');
  }));

it.each([
  ['a foreign key', 'alter table millrace.task drop constraint task_job_id_fkey', 'task_job_id_fkey'],
  ['an index', 'drop index millrace.run_failed; create index own on millrace.job (name)', 'run_failed'],
  ['a function', 'alter function millrace.fire_triggers rename to lost', 'function fire_triggers'],
  ['a table', 'alter table millrace.live rename to lost', 'table live'],
  ['much', 'drop schema millrace cascade; $', 'table active_instant, table activity, table backfill and \\d+ more'],
])('a schema without %s is incomplete', (_, statement, listed) =>
  withClient(tenant.address, async (client) => {
    await client.query('begin');
    const records = ['installation', 'migration'].map((table) => `create table millrace.${table} as table ${table}`);
    for (const table of ['installation', 'migration'])
      await client.query(`create temporary table ${table} on commit drop as table millrace.${table}`);
    await client.query(statement.replace('$', `create schema millrace; ${records.join(';')}`));
    await expect(engine.pending(client)).rejects.toThrow(
      new RegExp(`parts are missing \\(${listed}\\): a restore is still under way, or they were dropped or renamed`),
    );
    await client.query('rollback');
    expect(await engine.pending(client)).toEqual([]);
  }),
);
