/**
 * Statements of the active launcher in one turn: one for each kind of row, for any number of rows. Its transactions begin
 * with the check of its epoch (`lease.ts`).
 */
import { type Db, sql } from '../kernel/sql.ts';
import { type Terminated, terminated, terminatedOf } from '../postgres/drained.ts';
import { connectionsOf } from '../hosts/host-queries.ts';
import type { Launch, LaunchEntry, OrderReport } from './ledger.ts';
import type { MessageKind, Outcome } from '../control/messages.ts';
import { formatReason } from '../control/format-reason.ts';
import { type ReasonCode, readReason, storeReason } from '../control/reasons.ts';
import type { Slot, SlotChanges } from './slots.ts';
import type { LaunchState } from './states.ts';

export interface OpenMessage {
  readonly id: number;
  readonly kind: MessageKind;
  readonly tenantId: string;
  readonly xid: string | null;
  readonly deadline: Date;
  readonly outcome: Outcome | null;
  readonly detail: string | null;
  readonly acknowledgedAt: Date | null;
  readonly settledAt: Date | null;
}

export interface LaunchHost {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  readonly engine: string;
  readonly leaving: boolean;
  readonly onDemand: boolean;
  /** Tenants whose reports the database rejects. */
  readonly unsaid: readonly string[];
  readonly startedAt: Date;
  /** By the server's clock; -Infinity: known to be dead. */
  readonly beatMs: number;
  /** How it ended, if that is known: "was killed (SIGKILL)". */
  readonly fate?: string;
  /** A suspected tenant is in it, or was, as far as this launcher has seen. */
  readonly hadSuspect?: boolean;
}

const maxMessages = 10_000;

/** Call it first in a turn, so that the desired states that are read later are at least as new as the messages. */
export function readMessages(db: Db): Promise<OpenMessage[]> {
  return db.rows<OpenMessage>(sql`
    select id, kind, tenant_id as "tenantId", xid::text, deadline, outcome, detail,
           acknowledged_at as "acknowledgedAt", settled_at as "settledAt"
      from message
     where settled_at is null
     order by id
     limit ${maxMessages}`);
}

export function readHosts(db: Db): Promise<LaunchHost[]> {
  return db.rows<LaunchHost>(sql`
    select id, machine, pid, engine, leaving, on_demand as "onDemand", unsaid, started_at as "startedAt",
           (extract(epoch from beat_at) * 1000)::float8 as "beatMs"
      from host
     order by started_at, id`);
}

export function readSlots(db: Db): Promise<Slot[]> {
  return db.rows<Slot>(sql`
    select id, kind, tenant_id as "tenantId", holder, reason, asked_at as "askedAt", granted_at as "grantedAt"
      from slot`);
}

/** The server's time, and the limit of slots if it was set. */
export async function readClock(db: Db): Promise<{ now: Date; limit: number | undefined }> {
  const row = await db.one<{ now: Date; limit: number | null }>(sql`
    select clock_timestamp() as now,
           (select value::integer from setting where name = 'max_background_workers' and value ~ '^[0-9]{1,6}$') as limit`);
  return { now: row.now, limit: row.limit ?? undefined };
}

type EntryRow = {
  id: string;
  name: string;
  database: string;
  database_oid: number | null;
  desired: 'on' | 'off';
  discovered: boolean;
  own_host: boolean;
  state: LaunchState | null;
  code: ReasonCode | null;
  reason: string | null;
  why: unknown;
  wait_on: string | null;
  version: string | null;
  host_id: string | null;
  engine: string | null;
  order_no: number | null;
  ordered: boolean | null;
  ending: boolean | null;
  failures: number | null;
  suspicion: number | null;
  retry_at: Date | null;
  changed_at: Date | null;
  waits: boolean;
  report_no: number | null;
  report_host: string;
  phase: OrderReport['phase'];
  report_code: ReasonCode | null;
  report_reason: string | null;
  report_why: unknown;
};

export async function readEntries(db: Db): Promise<LaunchEntry[]> {
  const rows = await db.rows<EntryRow>(sql`
    select t.id, t.name, t.database, t.database_oid, t.desired, t.discovered, t.own_host,
           l.state, l.code, l.reason, l.why, l.wait_on, l.version, l.host_id, l.engine, l.order_no, l.ordered, l.ending,
           l.failures, l.suspicion, l.retry_at, l.changed_at,
           case when l.wait_on ~ '^[0-9]{1,19}$'
                then not pg_visible_in_snapshot(l.wait_on::xid8, pg_current_snapshot()) else false end as waits,
           s.order_no as report_no, s.host_id as report_host, s.phase, s.code as report_code, s.reason as report_reason,
           s.why as report_why
      from tenant t
      left join launch l on l.tenant_id = t.id
      left join scheduler s on s.tenant_id = t.id
     order by t.created_at, t.id`);
  return rows.map(entryOf);
}

function entryOf(row: EntryRow): LaunchEntry {
  const launch = launchOf(row);
  return {
    tenant: {
      id: row.id,
      name: row.name,
      database: row.database,
      databaseOid: row.database_oid,
      desired: row.desired,
      discovered: row.discovered,
      ownHost: row.own_host,
    },
    before: launch,
    launch,
    transactionIsOpen: row.waits,
    report: reportOf(row),
  };
}

function reportOf(row: EntryRow): OrderReport | undefined {
  const { report_no: orderNo, report_host: hostId, phase } = row;
  if (orderNo === null) return undefined;
  const columns = { code: row.report_code, reason: row.report_reason, why: row.report_why };
  return { orderNo, hostId, phase, reason: readReason(columns, 'error') };
}

function launchOf(row: EntryRow): Launch | undefined {
  if (row.state === null || row.changed_at === null) return undefined;
  return {
    state: row.state,
    reason: readReason(row),
    waitOn: row.wait_on,
    version: row.version,
    hostId: row.host_id,
    engine: row.engine,
    orderNo: row.order_no ?? 0,
    ordered: row.ordered ?? false,
    ending: row.ending ?? false,
    failures: row.failures ?? 0,
    suspicion: row.suspicion ?? 0,
    retryAt: row.retry_at,
    changedAt: row.changed_at,
  };
}

/** Returns the tenants that still exist, and keeps them from being deleted until the commit. */
export async function holdTenants(tx: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.rows<{ id: string }>(sql`
    select id from tenant where id = any(${ids}::uuid[]) order by id for key share`);
  return new Set(rows.map(({ id }) => id));
}

export async function writeLaunches(
  tx: Db,
  rows: readonly (readonly [tenantId: string, launch: Launch])[],
): Promise<void> {
  const of = <T>(pick: (launch: Launch) => T): T[] => rows.map(([, launch]) => pick(launch));
  const sentences = of(({ reason }) => (reason === null ? null : formatReason(reason)));
  const whys = of(({ reason }) => reason).map((reason, i) => storeReason(reason, sentences[i] ?? null));
  await tx.exec(sql`
    insert into launch
      (tenant_id, state, code, reason, why, wait_on, version, host_id, engine, order_no, ordered, ending, failures, suspicion,
       retry_at, changed_at)
    select *
      from unnest(
        ${rows.map(([id]) => id)}::uuid[], ${of((l) => l.state)}::text[],
        ${of((l) => l.reason?.code ?? null)}::text[], ${sentences}::text[], ${whys}::jsonb[], ${of((l) => l.waitOn)}::text[], ${of((l) => l.version)}::text[],
        ${of((l) => l.hostId)}::uuid[], ${of((l) => l.engine)}::text[], ${of((l) => l.orderNo)}::bigint[],
        ${of((l) => l.ordered)}::boolean[], ${of((l) => l.ending)}::boolean[], ${of((l) => l.failures)}::integer[],
        ${of((l) => l.suspicion)}::integer[], ${of((l) => l.retryAt)}::timestamptz[], ${of((l) => l.changedAt)}::timestamptz[]
      ) as r (tenant_id, state, code, reason, why, wait_on, version, host_id, engine, order_no, ordered, ending, failures,
              suspicion, retry_at, changed_at)
    on conflict (tenant_id) do update set
      state = excluded.state, code = excluded.code, reason = excluded.reason, why = excluded.why,
      wait_on = excluded.wait_on,
      version = excluded.version, host_id = excluded.host_id, engine = excluded.engine, order_no = excluded.order_no,
      ordered = excluded.ordered, ending = excluded.ending, failures = excluded.failures,
      suspicion = excluded.suspicion, retry_at = excluded.retry_at, changed_at = excluded.changed_at`);
}

export async function writeSlots(tx: Db, { removed, added, changed }: SlotChanges): Promise<void> {
  if (removed.length > 0) await tx.exec(sql`delete from slot where id = any(${removed.map((s) => s.id)}::uuid[])`);
  if (added.length > 0)
    await tx.exec(sql`
      insert into slot (id, kind, tenant_id, holder, reason, asked_at, granted_at)
      select * from unnest(
        ${added.map((s) => s.id)}::uuid[], ${added.map((s) => s.kind)}::text[], ${added.map((s) => s.tenantId)}::uuid[],
        ${added.map((s) => s.holder)}::uuid[], ${added.map((s) => s.reason)}::text[],
        ${added.map((s) => s.askedAt)}::timestamptz[], ${added.map((s) => s.grantedAt)}::timestamptz[])`);
  if (changed.length > 0)
    await tx.exec(sql`
      update slot set holder = c.holder, reason = c.reason, granted_at = c.granted_at
        from unnest(
          ${changed.map((s) => s.id)}::uuid[], ${changed.map((s) => s.holder)}::uuid[],
          ${changed.map((s) => s.reason)}::text[], ${changed.map((s) => s.grantedAt)}::timestamptz[]
        ) as c (id, holder, reason, granted_at)
       where slot.id = c.id`);
}

export async function writeMessages(tx: Db, messages: readonly OpenMessage[]): Promise<void> {
  await tx.exec(sql`
    update message
       set outcome = m.outcome, detail = m.detail, acknowledged_at = m.acknowledged_at, settled_at = m.settled_at
      from unnest(
        ${messages.map((m) => m.id)}::bigint[], ${messages.map((m) => m.outcome)}::text[],
        ${messages.map((m) => m.detail)}::text[], ${messages.map((m) => m.acknowledgedAt)}::timestamptz[],
        ${messages.map((m) => m.settledAt)}::timestamptz[]
      ) as m (id, outcome, detail, acknowledged_at, settled_at)
     where message.id = m.id and message.settled_at is null`);
}

/** A restart for a transaction that no message announced. */
export interface Unsent {
  readonly tenantId: string;
  readonly tenant: string;
  readonly cause: string;
  readonly xid: string | null;
  readonly pid: number | null;
}

/** Skips a transaction that a message has announced. A transaction without an id was not announced: senders get an id first. */
export async function sendUnsent(tx: Db, unsent: readonly Unsent[], at: Date): Promise<void> {
  await tx.exec(sql`
    insert into message (kind, tenant_id, tenant, sender, cause, xid, pid, sent_at, deadline)
    select 'restart', u.tenant_id, u.tenant, 'sql', u.cause, u.xid::xid8, u.pid, ${at}::timestamptz,
           ${at}::timestamptz + interval '1 day'
      from unnest(
        ${unsent.map((u) => u.tenantId)}::uuid[], ${unsent.map((u) => u.tenant)}::text[],
        ${unsent.map((u) => u.cause)}::text[], ${unsent.map((u) => u.xid)}::text[], ${unsent.map((u) => u.pid)}::integer[]
      ) as u (tenant_id, tenant, cause, xid, pid)
     where not exists (select from message m where m.tenant_id = u.tenant_id and m.xid = u.xid::xid8)`);
}

/**
 * Ends all connections of lost hosts to databases of this server, and deletes the hosts. The connections are found by the
 * host's id in their name. A connection of another role that has such a name stays; then the tenant's `singleton` lock
 * decides.
 */
export async function fenceHosts(tx: Db, hostIds: readonly string[]): Promise<Terminated> {
  if (hostIds.length === 0) return terminatedOf([]);
  const rows = await tx.rows<{ pid: number; ended: boolean }>(sql`
    select a.pid, ${terminated} as ended
      from pg_stat_activity a
      join unnest(${hostIds.map(connectionsOf)}::text[]) as lost (prefix) on starts_with(a.application_name, lost.prefix)
     where a.pid <> pg_backend_pid()`);
  await tx.exec(sql`delete from host where id = any(${hostIds}::uuid[])`);
  return terminatedOf(rows);
}

/** Tells idle hosts to leave, and returns their number. A host that is no longer idle stays. */
export function dismissHosts(tx: Db, idle: readonly string[]): Promise<number> {
  return tx.exec(sql`
    update host set leaving = true
     where not leaving and id = any(${idle}::uuid[])
       and not exists (select from launch where launch.host_id = host.id)`);
}
