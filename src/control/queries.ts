/** Statements on the control database about tenants, their schedulers, workers and gateways. */
import type { SchedulerInfo, WorkerInfo, WorkerPage } from '../contract/context.ts';
import { MillraceError } from '../errors.ts';
import { isId } from '../kernel/id.ts';
import { type Db, type Sql, sql } from '../kernel/sql.ts';
import { isSilent } from './liveness.ts';

export type TenantRow = {
  id: string;
  name: string;
  database: string;
  desired: 'on' | 'off';
  /** Null until the launcher has recorded it, and for a database on another server. */
  databaseOid?: number | null;
};

const columns = sql`
  tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid"`;

/** Lists all tenants or a page of them, ordered by name. */
export function listTenants(
  db: Db,
  { after, limit = null }: { readonly after?: string | undefined; readonly limit?: number | null } = {},
): Promise<TenantRow[]> {
  const further = after === undefined ? sql`true` : sql`name > ${after}`;
  return db.rows<TenantRow>(sql`select ${columns} from tenant where ${further} order by name limit ${limit}`);
}

export function findTenant(db: Db, name: string): Promise<TenantRow | undefined> {
  return db.maybeOne<TenantRow>(sql`select ${columns} from tenant where name = ${name}`);
}

/** Finds a tenant by a former name. */
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

/** Whether the tenant is STARTED, its host is alive, and its scheduler has sent a beat within ten seconds. */
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

/** The next triggers that the tenant's scheduler reported last, however long ago. */
export async function nextTriggers(db: Db, tenantId: string): Promise<readonly string[]> {
  const row = await db.maybeOne<{ next: string[] }>(sql`
    select next_triggers as next from scheduler where tenant_id = ${tenantId}`);
  return row?.next ?? [];
}

/** Limits of a list: number of workers, and bytes of their rows. The queues of one worker take up to 60 KB. */
const maxWorkers = 1_000;
const maxWorkerBytes = 1024 * 1024;

/** Workers that may serve this tenant: their keys are not bound to another. `bytes`: approximate size as JSON. */
function workersOf(tenantId: string): Sql {
  return sql`
    select worker.id, worker.name, addr, version, beat_at as "lastSeenAt", running, places, runtimes, unavailable, queues,
           300 + octet_length(worker.name) + octet_length(addr) + octet_length(queues::text) + octet_length(unavailable::text) as bytes
      from worker
      left join key on key.id = worker.key_id
     where (key.tenant_id is null or key.tenant_id = ${tenantId})`;
}

const workerColumns = sql`id, name, addr, version, "lastSeenAt", running, places, runtimes, unavailable, queues`;

/** Workers with a beat since then, ordered by name. If there are too many, those with the latest beats. */
export function seenWorkers(db: Db, tenantId: string, since: Date): Promise<WorkerInfo[]> {
  return db.rows(sql`
    with seen as (
      select *, sum(bytes) over (order by "lastSeenAt" desc, id) as bytes_so_far
        from (${workersOf(tenantId)}) as mine
       where "lastSeenAt" > ${since}
       order by "lastSeenAt" desc, id
       limit ${maxWorkers}
    )
    select ${workerColumns} from seen where bytes_so_far <= ${maxWorkerBytes} order by name, id`);
}

/** A page of workers with a beat since then, ordered by name: at most `limit` workers and a megabyte, at least one. */
export async function workerPage(
  db: Db,
  tenantId: string,
  page: { readonly since: Date; readonly cursor: string | undefined; readonly limit: number },
): Promise<WorkerPage> {
  const further = page.cursor === undefined ? sql`true` : sql`(name, id) > ${placeOf(page.cursor)}`;
  const rows = await db.rows<WorkerInfo & { hasMore: boolean }>(sql`
    with listed as (
      select *, sum(bytes) over earlier as bytes_so_far, row_number() over earlier as place,
             lead(id) over earlier is not null as has_more
        from (${workersOf(tenantId)}) as mine
       where "lastSeenAt" > ${page.since} and ${further}
      window earlier as (order by name, id)
    ),
    page as (
      select * from listed where place <= ${page.limit} and (place = 1 or bytes_so_far <= ${maxWorkerBytes})
    )
    select ${workerColumns}, has_more as "hasMore"
      from page
     order by place`);
  const last = rows.at(-1);
  return { workers: rows, next: last?.hasMore ? `${last.id}${last.name}` : null };
}

const idLength = 36;

function placeOf(cursor: string): Sql {
  const id = cursor.slice(0, idLength);
  if (isId(id)) return sql`(${cursor.slice(idLength)}::text, ${id}::uuid)`;
  throw new MillraceError('bad_request', 'query.cursor: take `next` of a page as it is', {
    faults: [{ path: 'query.cursor', message: 'take `next` of a page as it is' }],
  });
}

export function findWorker(db: Db, tenantId: string, id: string): Promise<WorkerInfo | undefined> {
  return db.maybeOne(sql`select ${workerColumns} from (${workersOf(tenantId)}) as mine where id = ${id}`);
}

/** Ids of the workers that use this key. */
export async function workersOfKey(db: Db, keyId: string): Promise<string[]> {
  const rows = await db.rows<{ id: string }>(sql`select id from worker where key_id = ${keyId}`);
  return rows.map((row) => row.id);
}

/** Deletes at most `most` workers without a beat since then. Returns their number. */
export function forgetWorkers(db: Db, heardSince: Date, most: number): Promise<number> {
  return db.exec(sql`
    delete from worker
     where id in (select id from worker where beat_at < ${heardSince} limit ${most} for update skip locked)`);
}

/** Deletes workers that have claimed runs and never sent a heartbeat. Any worker key can make up such ids, one per request. */
export function forgetClaimants(db: Db, claimedSince: Date): Promise<number> {
  return db.exec(sql`
    delete from worker
     where id in (select id from worker where incarnation = 0 and beat_at < ${claimedSince} for update skip locked)`);
}

/** Deletes gateways without a beat since then: they were killed. */
export function forgetGateways(db: Db, heardSince: Date): Promise<number> {
  return db.exec(sql`delete from gateway where beat_at < ${heardSince}`);
}

/** Since when at least one gateway has been serving without a break. */
export async function servingSince(db: Db, beatSince: Date): Promise<Date | undefined> {
  const row = await db.one<{ since: Date | null }>(sql`
    select min(serving_since) as since from gateway where beat_at > ${beatSince}`);
  return row.since ?? undefined;
}

/** Records how many subscribers a tenant has: couriers look only at tenants that have some. */
export async function noteBus(db: Db, tenantId: string, subscribers: number, at: Date): Promise<void> {
  await db.exec(sql`
    insert into bus (tenant_id, subscribers, changed_at)
    values (${tenantId}, ${subscribers}, ${at})
    on conflict (tenant_id) do update
       set subscribers = excluded.subscribers, changed_at = excluded.changed_at`);
}
