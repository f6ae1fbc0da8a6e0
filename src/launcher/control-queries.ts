/** Statements of the control database about tenants, hosts, schedulers, and the fleet that serves them. */
import type { SchedulerInfo, SchedulerStatus, WorkerInfo } from '../contract/engine.ts';
import type { SchedulerTally } from '../contract/tally.ts';
import { type Db, sql } from '../kernel/sql.ts';

export type TenantRow = { id: string; name: string; database: string; desired: 'on' | 'off' };

export function listTenants(db: Db): Promise<TenantRow[]> {
  return db.rows<TenantRow>(sql`select id, name, database, desired from tenant order by name`);
}

export function findTenant(db: Db, name: string): Promise<TenantRow | undefined> {
  return db.maybeOne<TenantRow>(sql`select id, name, database, desired from tenant where name = ${name}`);
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

export async function registerHost(
  db: Db,
  host: { id: string; machine: string; pid: number; engine: string; at: Date },
): Promise<void> {
  await db.exec(sql`
    insert into host (id, machine, pid, engine, started_at, beat_at)
    values (${host.id}, ${host.machine}, ${host.pid}, ${host.engine}, ${host.at}, ${host.at})`);
}

/** False when the row is gone: someone has written this host off. */
export async function beatHost(db: Db, id: string, at: Date): Promise<boolean> {
  return (await db.exec(sql`update host set beat_at = ${at} where id = ${id}`)) > 0;
}

export async function removeHost(db: Db, id: string): Promise<void> {
  await db.exec(sql`delete from host where id = ${id}`);
}

export async function pruneHosts(db: Db, beforeAt: Date): Promise<void> {
  await db.exec(sql`delete from host where beat_at < ${beforeAt}`);
  await db.exec(sql`delete from gateway where beat_at < ${beforeAt}`);
}

export interface SchedulerState {
  readonly tenantId: string;
  readonly id: string;
  readonly state: 'ENABLED' | 'ALLOCATED' | 'STARTED' | 'DISABLED';
  readonly reason: string | null;
  readonly hostId: string | null;
  readonly engine: string;
  readonly at: Date;
}

/** A host that lost the tenant to another must not overwrite what that one says. */
export async function noteState(db: Db, s: SchedulerState): Promise<void> {
  await db.exec(sql`
    insert into scheduler as x (tenant_id, id, state, reason, host_id, engine, changed_at, beat_at)
    values (${s.tenantId}, ${s.id}, ${s.state}, ${s.reason}, ${s.hostId}, ${s.engine}, ${s.at}, ${s.at})
    on conflict (tenant_id) do update set
      id = excluded.id, state = excluded.state, reason = excluded.reason, host_id = excluded.host_id,
      engine = excluded.engine, changed_at = excluded.changed_at, beat_at = excluded.beat_at
     where excluded.state = 'STARTED' or x.host_id is null or x.host_id is not distinct from excluded.host_id`);
}

export interface SchedulerBeat extends SchedulerStatus {
  readonly tenantId: string;
  readonly id: string;
  readonly tally: SchedulerTally;
}

/** Also says whose they are: a host that was written off for a while is their host again. */
export async function beatSchedulers(db: Db, hostId: string, beats: readonly SchedulerBeat[], at: Date): Promise<void> {
  await db.exec(sql`
    update scheduler s
       set beat_at = ${at}, queued_triggers = b.queued, next_trigger_id = b.next, tally = b.tally,
           next_triggers = b.coming::uuid[],
           host_id = case when s.state = 'STARTED' then ${hostId}::uuid else s.host_id end
      from unnest(
        ${beats.map((b) => b.tenantId)}::uuid[], ${beats.map((b) => b.id)}::uuid[],
        ${beats.map((b) => b.queuedTriggers)}::integer[], ${beats.map((b) => b.nextTriggerId)}::uuid[],
        ${beats.map((b) => JSON.stringify(b.tally))}::jsonb[],
        -- an array of arrays of different lengths there is none: each as text
        ${beats.map((b) => `{${b.nextTriggers.join()}}`)}::text[]
      ) as b (tenant_id, id, queued, next, tally, coming)
     where s.tenant_id = b.tenant_id and s.id = b.id`);
}

/** Schedulers whose hosts have not been heard of since then are not STARTED, whatever they said last. */
export async function disownSchedulers(db: Db, heardSince: Date): Promise<void> {
  await db.exec(sql`
    update scheduler set state = 'ENABLED', reason = 'starting', host_id = null
     where state = 'STARTED' and beat_at <= ${heardSince}`);
}

export async function isStarted(db: Db, tenant: string, beatSince: Date): Promise<boolean> {
  const row = await db.maybeOne(sql`
    select 1
      from scheduler
      join tenant on tenant.id = scheduler.tenant_id
     where tenant.name = ${tenant} and scheduler.state = 'STARTED' and scheduler.beat_at > ${beatSince}`);
  return row !== undefined;
}

export function seenSchedulers(db: Db, tenantId: string, since: Date): Promise<SchedulerInfo[]> {
  return db.rows(sql`
    select id, engine as version, beat_at as "lastSeenAt", queued_triggers as "queuedTriggers",
           next_trigger_id as "nextTriggerId"
      from scheduler
     where tenant_id = ${tenantId} and state = 'STARTED' and beat_at > ${since}`);
}

/** As the tenant's scheduler said last, whether or not it has been heard of since. */
export async function nextTriggers(db: Db, tenantId: string): Promise<readonly string[]> {
  const row = await db.maybeOne<{ next: string[] }>(sql`
    select next_triggers as next from scheduler where tenant_id = ${tenantId}`);
  return row?.next ?? [];
}

export function seenWorkers(db: Db, since: Date): Promise<WorkerInfo[]> {
  return db.rows(sql`
    select id, name, addr, version, beat_at as "lastSeenAt", running, places, runtimes, queues
      from worker
     where beat_at > ${since}
     order by name, id`);
}

/** At most so many that have not been heard of since then; answers how many. */
export function forgetWorkers(db: Db, heardSince: Date, most: number): Promise<number> {
  return db.exec(sql`
    delete from worker
     where id in (select id from worker where beat_at < ${heardSince} limit ${most} for update skip locked)`);
}

/** Since when at least one gateway has been serving without a break. */
export async function servingSince(db: Db, beatSince: Date): Promise<Date | undefined> {
  const row = await db.one<{ since: Date | null }>(sql`
    select min(serving_since) as since from gateway where beat_at > ${beatSince}`);
  return row.since ?? undefined;
}
