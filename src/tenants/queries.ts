/** Statements of the control database that make, change and end tenants. */
import { type Db, sql } from '../kernel/sql.ts';
import type { TenantRow } from '../control/queries.ts';
import { mayEnd } from '../postgres/drained.ts';
import { isHeld } from '../control/liveness.ts';

export type LifeRow = TenantRow & {
  databaseOid: number | null;
  discovered: boolean;
  ownHost: boolean;
  /** It is to be dropped: what was desired before. */
  leaving: 'on' | 'off' | null;
};

const columns = sql`
  tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid", tenant.discovered,
  tenant.own_host as "ownHost", tenant.leaving`;

export function findLifeRow(db: Db, name: string): Promise<LifeRow | undefined> {
  return db.maybeOne<LifeRow>(sql`select ${columns} from tenant where name = ${name}`);
}

/** By the database itself where that is known, else by what it is called. */
export function rowOfDatabase(db: Db, database: { name: string; oid: number }): Promise<LifeRow | undefined> {
  return db.maybeOne<LifeRow>(sql`
    select ${columns}
      from tenant
     where database_oid = ${database.oid} or (database_oid is null and database = ${database.name})`);
}

export type DatabaseFact = { name: string; oid: number; isTemplate: boolean; allowsConnections: boolean };

/** One whose drop was interrupted (-2) lets nobody in any more. */
const isOpen = sql`(datallowconn and datconnlimit <> -2)`;

/** Its drop was interrupted: nothing is left to be done with it but another. */
export async function isHalfDropped(db: Db, database: string): Promise<boolean> {
  return (await db.exec(sql`select from pg_database where datname = ${database} and datconnlimit = -2`)) > 0;
}

/** A database of the control database's server. */
export function databaseNamed(db: Db, name: string): Promise<DatabaseFact | undefined> {
  return db.maybeOne<DatabaseFact>(sql`
    select datname as name, oid, datistemplate as "isTemplate", ${isOpen} as "allowsConnections"
      from pg_database
     where datname = ${name}`);
}

/** The tenant's own database, though it was renamed since the row was written; not another that now has its name. */
export function databaseOf(db: Db, row: LifeRow): Promise<DatabaseFact | undefined> {
  return db.maybeOne<DatabaseFact>(sql`
    select datname as name, oid, datistemplate as "isTemplate", ${isOpen} as "allowsConnections"
      from pg_database
     where case
             when ${row.databaseOid}::oid is null then datname = ${row.database}
             else oid = ${row.databaseOid}::oid
           end`);
}

/** False where its name or database is taken. */
export async function insertTenant(
  db: Db,
  row: { id: string; name: string; database: string; ownHost: boolean; at: Date },
): Promise<boolean> {
  const inserted = await db.exec(sql`
    insert into tenant (id, name, database, database_oid, own_host, created_at)
    values (${row.id}, ${row.name}, ${row.database}, (select oid from pg_database where datname = ${row.database}),
            ${row.ownHost}, ${row.at})
    on conflict do nothing`);
  return inserted > 0;
}

/** Sees the database that its name leads to now. */
export async function noteDatabase(db: Db, id: string): Promise<void> {
  await db.exec(sql`
    update tenant
       set database_oid = pg_database.oid
      from pg_database
     where tenant.id = ${id} and pg_database.datname = tenant.database
       and tenant.database_oid is distinct from pg_database.oid`);
}

export type Registration = Pick<LifeRow, 'name' | 'desired' | 'discovered' | 'ownHost' | 'leaving'>;

/** False where the tenant is not as it was any more, or gone. A name that is taken violates `tenant_name_key`. */
export async function changeRegistration(
  db: Db,
  id: string,
  { from, to }: { readonly from: Registration; readonly to: Registration },
): Promise<boolean> {
  const changed = await db.exec(sql`
    update tenant
       set name = ${to.name}, desired = ${to.desired}, discovered = ${to.discovered}, own_host = ${to.ownHost},
           leaving = ${to.leaving}
     where id = ${id} and name = ${from.name} and desired = ${from.desired} and discovered = ${from.discovered}
       and own_host = ${from.ownHost} and leaving is not distinct from ${from.leaving}`);
  return changed > 0;
}

/** Listed as what is found is, and as nobody's. */
export async function unregister(db: Db, id: string): Promise<void> {
  await db.exec(sql`
    update tenant set discovered = true, desired = 'on', own_host = false, leaving = null where id = ${id}`);
}

/** False where the tenant is gone, or its new database's name is not its database's. */
export async function renameTenant(
  db: Db,
  { id, databaseOid }: LifeRow,
  to: { name: string; database: string },
): Promise<boolean> {
  const renamed = await db.exec(sql`
    update tenant
       set name = ${to.name}, database = ${to.database}
     where id = ${id} and ${databaseOid}::oid = (select oid from pg_database where datname = ${to.database})`);
  return renamed > 0;
}

/** False where the tenant is gone. Whoever wants it on wants it to stay; off, it is off though it should stay after all. */
export async function setDesired(db: Db, id: string, desired: 'on' | 'off'): Promise<boolean> {
  const changed = await db.exec(sql`
    update tenant
       set desired = ${desired}, leaving = case when ${desired} = 'off' and leaving is not null then 'off' end
     where id = ${id}`);
  return changed > 0;
}

/** Off, and to be gone; what was desired before is kept until it is. */
export async function setLeaving(db: Db, id: string): Promise<void> {
  await db.exec(sql`update tenant set desired = 'off', leaving = coalesce(leaving, desired) where id = ${id}`);
}

/** As it was before it was to be dropped; answers what is desired. */
export async function setStaying(db: Db, id: string): Promise<'on' | 'off' | undefined> {
  const row = await db.maybeOne<{ desired: 'on' | 'off' }>(sql`
    update tenant set desired = coalesce(leaving, desired), leaving = null where id = ${id} returning desired`);
  return row?.desired;
}

/** Answers whether anything changed. */
export async function setOwnHost(db: Db, id: string, ownHost: boolean): Promise<boolean> {
  const changed = await db.exec(sql`
    update tenant set own_host = ${ownHost} where id = ${id} and own_host is distinct from ${ownHost}`);
  return changed > 0;
}

/** Its keys, sessions, launch, slots and scheduler's word go with it. */
export async function deleteTenant(db: Db, id: string): Promise<boolean> {
  return (await db.exec(sql`delete from tenant where id = ${id}`)) > 0;
}

export async function deleteKeys(db: Db, tenantId: string): Promise<void> {
  await db.exec(sql`delete from session where tenant_id = ${tenantId}`);
  await db.exec(sql`delete from key where tenant_id = ${tenantId}`);
}

/** Whether some launcher holds the lease, by the server's clock. */
export async function isLauncherActive(db: Db): Promise<boolean> {
  const { active } = await db.one<{ active: boolean }>(sql`
    select exists (select from launcher_lease where ${isHeld}) as active`);
  return active;
}

export async function readSlotLimit(db: Db): Promise<number | undefined> {
  const row = await db.maybeOne<{ value: string }>(sql`
    select value from setting where name = 'max_background_workers'`);
  return row && Number(row.value);
}

export async function writeSlotLimit(db: Db, limit: number, by: { at: Date; actor: string }): Promise<void> {
  await db.exec(sql`
    insert into setting (name, value, changed_at, changed_by)
    values ('max_background_workers', ${String(limit)}, ${by.at}, ${by.actor})
    on conflict (name) do update set
      value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by`);
}

/**
 * Who keeps a database from being dropped or renamed, for people who must make them leave. Prepared transactions do so;
 * where it is to be dropped, sessions only if there are none of these and our role may not end them. Whoever has come while
 * PostgreSQL waited for all to leave was not in the way, and its own workers leave by themselves.
 */
export async function whoHolds(db: Db, database: string, what: 'dropped' | 'renamed'): Promise<string[]> {
  const rows = await db.rows<{ holder: string }>(sql`
    with prepared as (select gid from pg_prepared_xacts where database = ${database})
    select format('prepared transaction %L', gid) as holder from prepared
    union all
    select format('backend %s (%s)', a.pid, coalesce(nullif(a.application_name, ''), a.usename, a.backend_type, 'unknown'))
      from pg_stat_activity a
     where a.datname = ${database} and a.pid <> pg_backend_pid() and a.leader_pid is null
       and a.backend_type is distinct from 'autovacuum worker'
       and coalesce(a.backend_start, '-infinity') < clock_timestamp() - interval '5 seconds'
       and (${what} = 'renamed' or (not exists (select from prepared) and not ${mayEnd}))
     limit 10`);
  return rows.map(({ holder }) => holder);
}
