/** Statements of the control database about tenants, their schedulers, and the fleet that serves them. */
import type { SchedulerInfo, WorkerInfo } from '../contract/context.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { isSilent } from './liveness.ts';

export type TenantRow = {
  id: string;
  name: string;
  database: string;
  desired: 'on' | 'off';
  /** Null until the launcher has seen it, and of one on another server. */
  databaseOid?: number | null;
};

const columns = sql`
  tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid"`;

export function listTenants(db: Db): Promise<TenantRow[]> {
  return db.rows<TenantRow>(sql`select ${columns} from tenant order by name`);
}

export function findTenant(db: Db, name: string): Promise<TenantRow | undefined> {
  return db.maybeOne<TenantRow>(sql`select ${columns} from tenant where name = ${name}`);
}

/** The tenant that was called so before. */
export function findFormer(db: Db, name: string): Promise<TenantRow | undefined> {
  return db.maybeOne<TenantRow>(sql`
    select ${columns}
      from former_name
      join tenant on tenant.id = former_name.tenant_id
     where former_name.name = ${name} and former_name.until > now()`);
}

export function forgetFormerNames(db: Db): Promise<number> {
  return db.exec(sql`delete from former_name where until <= now()`);
}

export async function registerTenant(
  db: Db,
  tenant: { id: string; name: string; database: string; at: Date },
): Promise<boolean> {
  const inserted = await db.exec(sql`
    insert into tenant (id, name, database, created_at)
    values (${tenant.id}, ${tenant.name}, ${tenant.database}, ${tenant.at})
    on conflict do nothing`);
  return inserted > 0;
}

/** STARTED, and heard of lately: its host as the launcher judges it, and its scheduler within ten seconds. */
export async function isStarted(db: Db, tenant: string): Promise<boolean> {
  const row = await db.maybeOne(sql`
    select 1
      from launch
      join tenant on tenant.id = launch.tenant_id
      join host on host.id = launch.host_id and not ${isSilent}
      join scheduler on scheduler.tenant_id = tenant.id
     where tenant.name = ${tenant} and launch.state = 'STARTED'
       and scheduler.phase = 'running' and scheduler.order_no = launch.order_no
       and scheduler.beat_at > clock_timestamp() - interval '10 seconds'`);
  return row !== undefined;
}

export function seenSchedulers(db: Db, tenantId: string, since: Date): Promise<SchedulerInfo[]> {
  return db.rows(sql`
    select id, engine as version, beat_at as "lastSeenAt", queued_triggers as "queuedTriggers",
           next_trigger_id as "nextTriggerId"
      from scheduler
     where tenant_id = ${tenantId} and phase = 'running' and beat_at > ${since}`);
}

/** As the tenant's scheduler said last, whether or not it has been heard of since. */
export async function nextTriggers(db: Db, tenantId: string): Promise<readonly string[]> {
  const row = await db.maybeOne<{ next: string[] }>(sql`
    select next_triggers as next from scheduler where tenant_id = ${tenantId}`);
  return row?.next ?? [];
}

/** Workers of a list. The API's answer names the queues of each, up to 20 KB. */
const maxWorkers = 1_000;

/** Workers that may serve this tenant, whose keys are not bound to another; those heard of last, if there are too many. */
export function seenWorkers(db: Db, tenantId: string, since: Date): Promise<WorkerInfo[]> {
  return db.rows(sql`
    with seen as (
      select worker.id, worker.name, addr, version, beat_at as "lastSeenAt", running, places, runtimes, unavailable,
             queues
        from worker
        left join key on key.id = worker.key_id
       where beat_at > ${since} and (key.tenant_id is null or key.tenant_id = ${tenantId})
       order by beat_at desc
       limit ${maxWorkers}
    )
    select * from seen order by name, id`);
}

/** Ids of the workers that call with this key. */
export async function workersOfKey(db: Db, keyId: string): Promise<string[]> {
  const rows = await db.rows<{ id: string }>(sql`select id from worker where key_id = ${keyId}`);
  return rows.map((row) => row.id);
}

/** At most so many that have not been heard of since then; answers how many. */
export function forgetWorkers(db: Db, heardSince: Date, most: number): Promise<number> {
  return db.exec(sql`
    delete from worker
     where id in (select id from worker where beat_at < ${heardSince} limit ${most} for update skip locked)`);
}

/** Those that were killed. */
export function forgetGateways(db: Db, heardSince: Date): Promise<number> {
  return db.exec(sql`delete from gateway where beat_at < ${heardSince}`);
}

/** Since when at least one gateway has been serving without a break. */
export async function servingSince(db: Db, beatSince: Date): Promise<Date | undefined> {
  const row = await db.one<{ since: Date | null }>(sql`
    select min(serving_since) as since from gateway where beat_at > ${beatSince}`);
  return row.since ?? undefined;
}
