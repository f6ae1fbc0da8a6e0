/** Statements on the control database that create, change and remove tenants. */
import { type Db, sql } from '../kernel/sql.ts';
import type { TenantRow } from '../control/queries.ts';
import { mayEnd } from '../postgres/drained.ts';
import { isHeld } from '../control/liveness.ts';

export type LifeRow = TenantRow & {
  databaseOid: number | null;
  discovered: boolean;
  ownHost: boolean;
  /** Set while the tenant is being dropped: the desired state from before. */
  leaving: 'on' | 'off' | null;
};

const columns = sql`
  tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid", tenant.discovered,
  tenant.own_host as "ownHost", tenant.leaving`;

export function findLifeRow(db: Db, name: string): Promise<LifeRow | undefined> {
  return db.maybeOne<LifeRow>(sql`select ${columns} from tenant where name = ${name}`);
}

/** Finds a row by the oid of its database; a row without an oid by the database's name. */
export function rowOfDatabase(db: Db, database: { name: string; oid: number }): Promise<LifeRow | undefined> {
  return db.maybeOne<LifeRow>(sql`
    select ${columns}
      from tenant
     where database_oid = ${database.oid} or (database_oid is null and database = ${database.name})`);
}

export type DatabaseFact = { name: string; oid: number; isTemplate: boolean; allowsConnections: boolean };

/** A database whose drop was interrupted (-2) accepts no connections. */
const isOpen = sql`(datallowconn and datconnlimit <> -2)`;

/** Whether its drop was interrupted. PostgreSQL then allows nothing but another drop. */
export async function isHalfDropped(db: Db, database: string): Promise<boolean> {
  return (await db.exec(sql`select from pg_database where datname = ${database} and datconnlimit = -2`)) > 0;
}

/** Finds a database of the control database's server. */
export function databaseNamed(db: Db, name: string): Promise<DatabaseFact | undefined> {
  return db.maybeOne<DatabaseFact>(sql`
    select datname as name, oid, datistemplate as "isTemplate", ${isOpen} as "allowsConnections"
      from pg_database
     where datname = ${name}`);
}

/** Finds the tenant's own database, even if it was renamed since; never another database that now has its name. */
export function databaseOf(db: Db, row: LifeRow): Promise<DatabaseFact | undefined> {
  return db.maybeOne<DatabaseFact>(sql`
    select datname as name, oid, datistemplate as "isTemplate", ${isOpen} as "allowsConnections"
      from pg_database
     where case
             when ${row.databaseOid}::oid is null then datname = ${row.database}
             else oid = ${row.databaseOid}::oid
           end`);
}

/** Returns false if the name or database is taken. */
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

/** Records the oid of the database that now has the tenant's database name. */
export async function recordDatabaseOid(db: Db, id: string): Promise<void> {
  await db.exec(sql`
    update tenant
       set database_oid = pg_database.oid
      from pg_database
     where tenant.id = ${id} and pg_database.datname = tenant.database
       and tenant.database_oid is distinct from pg_database.oid`);
}

export type Registration = Pick<LifeRow, 'name' | 'desired' | 'discovered' | 'ownHost' | 'leaving'>;

/** Returns false if the tenant no longer matches `from` or is gone. Fails with `tenant_name_key` if the name is taken. */
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

/** Makes it an unregistered tenant, as if it had just been discovered. */
export async function unregister(db: Db, id: string): Promise<void> {
  await db.exec(sql`
    update tenant set discovered = true, desired = 'on', own_host = false, leaving = null where id = ${id}`);
}

/** Returns false if the tenant is gone, or the new database name does not lead to the tenant's own database. */
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

/** Returns false if the tenant is gone. `on` ends a drop; `off` during a drop stays in force if the drop fails. */
export async function setDesired(db: Db, id: string, desired: 'on' | 'off'): Promise<boolean> {
  const changed = await db.exec(sql`
    update tenant
       set desired = ${desired}, leaving = case when ${desired} = 'off' and leaving is not null then 'off' end
     where id = ${id}`);
  return changed > 0;
}

/** Marks the tenant as off and leaving, and keeps the desired state from before. */
export async function setLeaving(db: Db, id: string): Promise<void> {
  await db.exec(sql`update tenant set desired = 'off', leaving = coalesce(leaving, desired) where id = ${id}`);
}

/** Restores the state before the drop; returns the desired state. */
export async function setStaying(db: Db, id: string): Promise<'on' | 'off' | undefined> {
  const row = await db.maybeOne<{ desired: 'on' | 'off' }>(sql`
    update tenant set desired = coalesce(leaving, desired), leaving = null where id = ${id} returning desired`);
  return row?.desired;
}

/** Returns whether anything changed. */
export async function setOwnHost(db: Db, id: string, ownHost: boolean): Promise<boolean> {
  const changed = await db.exec(sql`
    update tenant set own_host = ${ownHost} where id = ${id} and own_host is distinct from ${ownHost}`);
  return changed > 0;
}

/** Also deletes its keys, sessions, launch, slots and scheduler rows. */
export async function deleteTenant(db: Db, id: string): Promise<boolean> {
  return (await db.exec(sql`delete from tenant where id = ${id}`)) > 0;
}

export async function deleteKeys(db: Db, tenantId: string): Promise<void> {
  await db.exec(sql`delete from session where tenant_id = ${tenantId}`);
  await db.exec(sql`delete from key where tenant_id = ${tenantId}`);
}

/** Whether a launcher holds the lease, by the server's clock. */
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
 * Describes what keeps a database from being dropped or renamed, for the user who must end it: prepared transactions and
 * sessions. For a drop, sessions count only if there are no prepared transactions and our role may not end them. Sessions
 * younger than 5 s do not count: they came while PostgreSQL waited. Autovacuum workers leave by themselves.
 */
export async function describeHolders(db: Db, database: string, what: 'dropped' | 'renamed'): Promise<string[]> {
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
