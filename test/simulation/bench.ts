/**
 * A database for simulations, used by one world after the other. It keeps a journal, and a rule of the product may be
 * broken in it. The same seed always gets the same ids and random numbers, because the order in which PostgreSQL visits
 * rows depends on them.
 */
import type { PoolClient } from 'pg';
import { type Db, onClient, sql } from '../../src/kernel/sql.ts';
import type { Address } from '../../src/postgres/address.ts';
import { makeTenantDatabase } from '../harness/tenant-database.ts';
import { installJournal } from './journal.ts';

export interface Bench {
  readonly address: Address;
  /** The only connection; every statement of a world uses it. */
  readonly client: PoolClient;
  /** Empties the database for the next world. */
  wipe(seed: number): Promise<void>;
  close(): Promise<void>;
}

export async function makeBench(breakRule: (db: Db) => Promise<void> = async () => {}): Promise<Bench> {
  const database = await makeTenantDatabase();
  const client = await database.pool.connect();
  const db = onClient(client);
  await client.query(settings);
  await breakRule(db);
  await installJournal(db);
  await countIds(db);
  const wiping = await wipingOf(db);
  let worlds = 0;
  return {
    address: database.address,
    client,
    async wipe(seed) {
      await client.query(`${wiping}; select setseed(${(seed % 1_000) / 1_000})`);
      if (worlds++ % vacuumEvery === 0) await client.query('vacuum');
    },
    async close() {
      client.release();
      await database.close();
    },
  };
}

const vacuumEvery = 20;

/**
 * Generic plans, because planning is most of a small statement's time. Only plans that visit rows in key order, because
 * the position of rows on disk and the hashes of ids depend on earlier worlds. No statistics, because they would decide
 * when the product and PostgreSQL vacuum.
 */
const settings = `
  set plan_cache_mode to force_generic_plan;
  set enable_seqscan to off;
  set enable_bitmapscan to off;
  set enable_hashjoin to off;
  set enable_hashagg to off;
  set jit to off;
  set track_counts to off;
  set simulation.step to '0'`;

/** Makes ids reproducible: tasks and triggers derive theirs from their name, other rows from a counter. */
async function countIds(db: Db): Promise<void> {
  await db.exec(sql`create sequence simulation.id`);
  await db.exec(sql`
    create or replace function new_id() returns uuid language sql volatile as $$
      select ('00000000-0000-7000-8000-' || lpad(to_hex(nextval('simulation.id')), 12, '0'))::uuid
    $$`);
  await db.exec(sql`
    create function simulation.name_id() returns trigger language plpgsql as $$
    begin
      new.id := md5(new.job_id || tg_table_name || new.name)::uuid;
      return new;
    end $$`);
  for (const table of [sql`task`, sql`trigger`]) {
    await db.exec(sql`
      create trigger named before insert on ${table} for each row execute function simulation.name_id()`);
  }
}

/** Deletes from every table but `topic`, which migrations fill; referring tables come first. */
async function wipingOf(db: Db): Promise<string> {
  const tables = await db.rows<{ name: string; refers_to: string[] }>(sql`
    select c.relname as name,
           array(select f.confrelid::regclass::text from pg_constraint f
                  where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as refers_to
      from pg_class c
     where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname <> 'topic'
     order by c.relname`);
  const order: string[] = [];
  const visit = (name: string): void => {
    if (order.includes(name)) return;
    for (const other of tables) if (other.refers_to.includes(name)) visit(other.name);
    order.push(name);
  };
  for (const { name } of tables) visit(name);
  const deletes = [...order, 'simulation.journal'].map((name) => `delete from ${name}`);
  return [...deletes, 'alter sequence simulation.id restart', `set simulation.step to '0'`].join(';\n');
}
