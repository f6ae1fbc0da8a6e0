/**
 * Statements of hosts on the control database: their own rows, the orders that name them, and their reports on these. All
 * times are the server's: the launcher decides by them which hosts are alive.
 */
import type { SchedulerStatus } from '../contract/context.ts';
import type { SchedulerTally } from '../contract/tally.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { TenantRow } from '../control/queries.ts';
import { isHeld } from '../control/liveness.ts';
import { formatCause } from '../control/format-reason.ts';
import { boundText, type Reason, storeReason } from '../control/reasons.ts';

export interface HostProcessRow {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  readonly engine: string;
  readonly memory: number;
  /** A launcher has started it, and may dismiss it. */
  readonly onDemand?: boolean;
}

export async function registerHost(db: Db, host: HostProcessRow): Promise<void> {
  await db.exec(sql`
    insert into host (id, machine, pid, engine, memory, on_demand, started_at, beat_at)
    values (${host.id}, ${host.machine}, ${host.pid}, ${host.engine}, ${host.memory}, ${host.onDemand ?? false}, now(), now())`);
}

export interface HostBeat {
  readonly id: string;
  readonly memory: number;
  /** Tenants whose reports the database rejects. */
  readonly unsaid: readonly string[];
}

export interface HostAnswer {
  readonly leaving: boolean;
  /** A launcher is active. */
  readonly launched: boolean;
}

/** Undefined when the row is gone: this host was written off. */
export function beatHost(db: Db, { id, memory, unsaid }: HostBeat): Promise<HostAnswer | undefined> {
  return db.maybeOne<HostAnswer>(sql`
    update host set beat_at = now(), memory = ${memory}, unsaid = ${unsaid}::uuid[] where id = ${id}
    returning leaving, exists (select from launcher_lease where ${isHeld}) as launched`);
}

export async function removeHost(db: Db, id: string): Promise<void> {
  await db.exec(sql`delete from host where id = ${id}`);
}

/** Marks the host as leaving: the launcher gives it no more tenants. */
export async function leaveSoon(db: Db, id: string): Promise<void> {
  await db.exec(sql`update host set leaving = true where id = ${id}`);
}

/** Marks the host as lost, so that the launcher need not wait for missing beats. */
export async function giveUpHost(db: Db, id: string): Promise<void> {
  await db.exec(sql`update host set leaving = true, beat_at = '-infinity' where id = ${id}`);
}

/** Marks the host of a process that is known to have ended as lost. Returns false if there is no such host. */
export async function markHostLost(db: Db, { machine, pid }: { machine: string; pid: number }): Promise<boolean> {
  const lost = await db.exec(sql`
    update host set leaving = true, beat_at = '-infinity' where machine = ${machine} and pid = ${pid}`);
  return lost > 0;
}

/** Prefix of the application names of all connections of a host. Its connections are ended by this prefix when it is lost. */
export function connectionsOf(hostId: string): string {
  return `millrace host ${hostId.slice(-12)}`;
}

/** Whether the host's row is gone. */
export async function isWrittenOff(db: Db, hostId: string): Promise<boolean> {
  return (await db.maybeOne(sql`select from host where id = ${hostId}`)) === undefined;
}

/** An order to run this tenant's scheduler with this engine. A higher number is a newer order. */
export interface Order {
  readonly row: TenantRow;
  readonly engine: string;
  readonly orderNo: number;
  /** The last attempt ended because a part of the scheduler failed. */
  readonly hasFailed?: boolean;
  /** The host that ran the tenant last, and the host that reported on it last, which may have been starting it. */
  readonly lastHosts?: readonly string[];
}

/** The orders of a host. It carries out exactly these. */
export interface Orders {
  readonly orders: readonly Order[];
  /** Orders whose end the host has not reported yet. The launcher waits for that report, even if an order was never begun. */
  readonly withdrawn: readonly Order[];
}

type OrderRow = TenantRow & {
  engine: string | null;
  order_no: number;
  ordered: boolean;
  has_failed: boolean;
  last_hosts: string[];
};

export async function ordersFor(db: Db, hostId: string): Promise<Orders> {
  const rows = await db.rows<OrderRow>(sql`
    select tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid",
           launch.engine, launch.order_no, launch.ordered, launch.code is not distinct from 'failing' as has_failed,
           array_remove(array[scheduler.ran_on, scheduler.host_id], null) as last_hosts
      from launch
      join tenant on tenant.id = launch.tenant_id
      left join scheduler on scheduler.tenant_id = tenant.id
     where launch.host_id = ${hostId} and (launch.ordered or launch.ending)
     order by launch.changed_at`);
  return {
    orders: rows.filter(({ ordered }) => ordered).map(orderOf),
    withdrawn: rows.filter(({ ordered }) => !ordered).map(orderOf),
  };
}

function orderOf({ id, name, database, databaseOid, desired, ...order }: OrderRow): Order {
  const row = { id, name, database, databaseOid: databaseOid ?? null, desired };
  const { engine, order_no: orderNo, has_failed: hasFailed, last_hosts: lastHosts } = order;
  return { row, engine: engine ?? '', orderNo, hasFailed, lastHosts };
}

/** A host's report on an order. */
export interface HostReport {
  readonly tenantId: string;
  readonly orderNo: number;
  /** Id of the scheduler, new with every attempt. */
  readonly id: string;
  readonly engine: string;
  readonly phase: 'starting' | 'running' | 'ended';
  /** While the scheduler runs: its parts that do not work, or null if all do. */
  readonly reason: Reason | null;
}

/** Ignores reports on orders older than the recorded one, and all reports of a host that was written off. */
export async function writeReports(db: Db, hostId: string, reports: readonly HostReport[]): Promise<void> {
  const sentences = reports.map(({ reason }) => (reason === null ? null : boundText(formatCause(reason))));
  const whys = reports.map(({ reason }, i) => storeReason(reason, sentences[i] ?? null));
  await db.exec(sql`
    insert into scheduler as x
      (tenant_id, id, host_id, ran_on, order_no, phase, code, reason, why, engine, changed_at, beat_at)
    select w.tenant_id, w.id, host.id, case when w.phase = 'running' then host.id end, w.order_no, w.phase, w.code, w.reason,
           w.why, w.engine, now(), now()
      from unnest(
        ${reports.map((w) => w.tenantId)}::uuid[], ${reports.map((w) => w.id)}::uuid[],
        ${reports.map((w) => w.orderNo)}::bigint[], ${reports.map((w) => w.phase)}::text[],
        ${reports.map((w) => w.reason?.code ?? null)}::text[], ${sentences}::text[], ${whys}::jsonb[],
        ${reports.map((w) => w.engine)}::text[]
      ) as w (tenant_id, id, order_no, phase, code, reason, why, engine)
      join tenant on tenant.id = w.tenant_id
      join host on host.id = ${hostId}
     order by w.tenant_id
    on conflict (tenant_id) do update set
      id = excluded.id, host_id = excluded.host_id, ran_on = coalesce(excluded.ran_on, x.ran_on),
      order_no = excluded.order_no, phase = excluded.phase, code = excluded.code, reason = excluded.reason,
      why = excluded.why, engine = excluded.engine, changed_at = excluded.changed_at, beat_at = excluded.beat_at
     where excluded.order_no >= x.order_no`);
}

export interface SchedulerBeat extends SchedulerStatus {
  readonly tenantId: string;
  readonly id: string;
  readonly tally: SchedulerTally;
}

export async function beatSchedulers(db: Db, hostId: string, beats: readonly SchedulerBeat[]): Promise<void> {
  await db.exec(sql`
    update scheduler s
       set beat_at = now(), queued_triggers = b.queued, next_trigger_id = b.next, tally = b.tally, ready = b.ready,
           next_triggers = b.coming::uuid[], flow_inbox = b.inbox, next_timer_at = b.timer
      from unnest(
        ${beats.map((b) => b.tenantId)}::uuid[], ${beats.map((b) => b.id)}::uuid[],
        ${beats.map((b) => b.queuedTriggers)}::integer[], ${beats.map((b) => b.nextTriggerId)}::uuid[],
        ${beats.map((b) => JSON.stringify(b.tally))}::jsonb[], ${beats.map((b) => b.ready)}::boolean[],
        -- as text, because PostgreSQL has no arrays of arrays of different lengths
        ${beats.map((b) => `{${b.nextTriggers.join()}}`)}::text[],
        ${beats.map((b) => b.flows?.inbox ?? false)}::boolean[],
        ${beats.map((b) => b.flows?.nextDueAt ?? null)}::timestamptz[]
      ) as b (tenant_id, id, queued, next, tally, ready, coming, inbox, timer)
     where s.tenant_id = b.tenant_id and s.id = b.id and s.host_id = ${hostId}`);
}
