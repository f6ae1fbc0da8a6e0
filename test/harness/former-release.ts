/** A tenant as release 0.1.0 left it, restored from `test/fixtures/tenant-0.1.0.sql`. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ClientBase } from 'pg';
import { onClient, sql } from '../../src/kernel/sql.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { type FreshDatabase, makeFreshDatabase } from './fresh-database.ts';

export async function restoreFormerTenant(): Promise<FreshDatabase> {
  const path = fileURLToPath(new URL('../fixtures/tenant-0.1.0.sql', import.meta.url));
  const text = await readFile(path, 'utf8');
  const fresh = await makeFreshDatabase();
  await withClient(fresh.address, (client) => client.query(text));
  return fresh;
}

/** Table → the digest of its rows, without the records of migrations. A column that is null counts as one that is not there. */
export async function digestTables(client: ClientBase): Promise<Map<string, string>> {
  const tables = await onClient(client).rows<{ name: string }>(sql`
    select relname as name
      from pg_class
     where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not in ('installation', 'migration')`);
  const digests = new Map<string, string>();
  for (const { name } of tables) {
    const { rows } = await client.query<{ digest: string }>(
      `select count(*) || ' ' || md5(coalesce(string_agg(r.text, chr(10) order by r.text), '')) as digest
         from (select jsonb_strip_nulls(to_jsonb(t))::text as text from millrace.${name} as t) as r`,
    );
    digests.set(name, rows[0]?.digest ?? '');
  }
  return digests;
}

/** The full definition of every function: body, settings and volatility. */
export async function functionDefinitions(client: ClientBase): Promise<string[]> {
  const rows = await onClient(client).rows<{ definition: string }>(sql`
    select pg_get_functiondef(oid) as definition
      from pg_proc
     where pronamespace = 'millrace'::regnamespace
     order by 1`);
  return rows.map(({ definition }) => definition);
}
