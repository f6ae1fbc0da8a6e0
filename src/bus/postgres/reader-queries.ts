/** Statements about readers that a worker holds. Each names the worker and the leases, and has no effect on others. */
import { type Db, sql } from '../../kernel/sql.ts';
import { deliverKey } from '../errand-keys.ts';
import type {
  CutShort,
  DeliveryRow,
  Done,
  DoneResult,
  Failed,
  GivenUp,
  HeldReader,
  LoadedReader,
  ReaderName,
  SubscriberMinute,
  Receiver,
} from '../store.ts';
import { type ReaderRow, type ReceiverRow, toReader, toReceiver } from './rows.ts';

const subscribersOf = (list: readonly ReaderName[]): string[] => list.map((reader) => reader.subscriber);
const strandsOf = (list: readonly ReaderName[]): number[] => list.map((reader) => reader.strand);
const leasesOf = (list: readonly HeldReader[]): number[] => list.map((reader) => reader.lease);
const toDate = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

export async function loadReaders(db: Db, worker: string, held: readonly HeldReader[]): Promise<LoadedReader[]> {
  const rows = await db.rows<ReaderRow>(sql`
    select b.fanned, b.revision, a.n::integer as n, r.pos, r.queued, r.batch_end, r.attempts, r.failures, r.first_failed_at,
           r.failures >= 5 and s.first_failed_at is not null and exists (
             select from reader o where o.subscriber_id = r.subscriber_id and o.strand < r.strand and o.queued > 0
           ) as is_behind_other,
           s.name, s.state = 'active' and s.kind = 'http' as is_active, s.callback, s.credential, s.secrets, s.health,
           s.last_delivered_at, s.rate, s.max_attempts, s.max_age_ms, s.request_ms
      from unnest(${subscribersOf(held)}::uuid[], ${strandsOf(held)}::smallint[], ${leasesOf(held)}::integer[])
           with ordinality as a (subscriber_id, strand, lease, n)
      join errand e on e.queue = 'main' and e.key = deliver_key(a.subscriber_id, a.strand) and e.state = 'r'
      join errand_hold h on h.lease = a.lease and h.worker = ${worker}::uuid and h.queue = 'main' and e.id <@ h.ids
      join reader r on r.subscriber_id = a.subscriber_id and r.strand = a.strand
      join subscriber s on s.id = r.subscriber_id
     cross join bus_state b`);
  return rows.flatMap((row) => {
    const reader = held[row.n - 1];
    return reader === undefined ? [] : toReader(row, reader);
  });
}

/** The receiver of a subscriber, whatever its state; undefined: it is gone, or has none. */
export async function findReceiver(db: Db, subscriber: string): Promise<Receiver | undefined> {
  const row = await db.maybeOne<ReceiverRow>(sql`
    select name, state = 'active' as is_active, callback, credential, secrets, health, last_delivered_at, rate, max_attempts,
           max_age_ms, request_ms
      from subscriber
     where id = ${subscriber} and kind = 'http'`);
  return row && toReceiver(row);
}

type DoneRow = {
  readonly subscriber_id: string;
  readonly strand: number;
  readonly is_held: boolean;
  readonly pos: number;
  readonly queued: number;
  readonly state: string;
};

export async function deliverDone(
  db: Db,
  worker: string,
  acks: readonly Done[],
  nowMs: number,
): Promise<(DoneResult | undefined)[]> {
  const rows = await db.rows<DoneRow>(sql`
    select subscriber_id, strand, is_held, pos, queued, state
      from deliver_done(
        ${worker}::uuid,
        ${subscribersOf(acks)}::uuid[],
        ${strandsOf(acks)}::smallint[],
        ${leasesOf(acks)}::integer[],
        ${acks.map((a) => a.from)}::bigint[],
        ${acks.map((a) => a.to)}::bigint[],
        ${acks.map((a) => a.events)}::integer[],
        ${acks.map((a) => a.batches)}::integer[],
        ${acks.map((a) => toDate(a.nextAtMs))}::timestamptz[],
        ${new Date(nowMs)}::timestamptz)`);
  const byKey = new Map(rows.map((row) => [deliverKey({ subscriber: row.subscriber_id, strand: row.strand }), row]));
  return acks.map((ack) => {
    const row = byKey.get(deliverKey(ack));
    return row && { isHeld: row.is_held, pos: row.pos, queued: row.queued, isActive: row.state === 'active' };
  });
}

export async function deliverFailed(
  db: Db,
  worker: string,
  attempts: readonly Failed[],
  nowMs: number,
): Promise<boolean[]> {
  const rows = await db.rows<{ key: string }>(sql`
    select key
      from deliver_failed(
        ${worker}::uuid,
        ${subscribersOf(attempts)}::uuid[],
        ${strandsOf(attempts)}::smallint[],
        ${leasesOf(attempts)}::integer[],
        ${attempts.map((a) => a.from)}::bigint[],
        ${attempts.map((a) => new Date(a.runAtMs))}::timestamptz[],
        ${attempts.map((a) => a.reason)}::text[],
        ${new Date(nowMs)}::timestamptz) as key`);
  return namedIn(rows, attempts);
}

export async function cutShort(db: Db, worker: string, batches: readonly CutShort[]): Promise<boolean[]> {
  const rows = await db.rows<{ key: string }>(sql`
    select key
      from cut_short(
        ${worker}::uuid,
        ${subscribersOf(batches)}::uuid[],
        ${strandsOf(batches)}::smallint[],
        ${leasesOf(batches)}::integer[],
        ${batches.map((b) => b.from)}::bigint[],
        ${batches.map((b) => b.end)}::bigint[]) as key`);
  return namedIn(rows, batches);
}

function namedIn(rows: readonly { readonly key: string }[], readers: readonly ReaderName[]): boolean[] {
  const keys = new Set(rows.map(({ key }) => key));
  return readers.map((reader) => keys.has(deliverKey(reader)));
}

export async function putBack(
  db: Db,
  worker: string,
  held: HeldReader,
  until: { readonly runAtMs: number; readonly queued: number; readonly reason: string | null },
): Promise<boolean | undefined> {
  const row = await db.one<{ is_held: boolean | null }>(sql`
    select put_back(
      ${worker}::uuid, ${held.subscriber}::uuid, ${held.strand}::smallint, ${held.lease}::integer, ${until.queued}::bigint,
      ${new Date(until.runAtMs)}::timestamptz, ${until.reason}::text) as is_held`);
  return row.is_held ?? undefined;
}

export async function endIdle(db: Db, worker: string, held: HeldReader): Promise<boolean> {
  const row = await db.one<{ is_held: boolean }>(sql`
    select end_idle(
      ${worker}::uuid, ${held.subscriber}::uuid, ${held.strand}::smallint, ${held.lease}::integer) as is_held`);
  return row.is_held;
}

export async function reachBarrier(
  db: Db,
  worker: string,
  held: HeldReader,
  positions: { readonly from: number; readonly barrier: number },
): Promise<boolean | undefined> {
  const row = await db.one<{ is_passed: boolean | null }>(sql`
    select reach_barrier(
      ${worker}::uuid, ${held.subscriber}::uuid, ${held.strand}::smallint, ${held.lease}::integer,
      ${positions.from}::bigint, ${positions.barrier}::bigint) as is_passed`);
  return row.is_passed ?? undefined;
}

export async function recount(
  db: Db,
  worker: string,
  held: HeldReader,
  range: { readonly from: number; readonly to: number; readonly fanned: number },
): Promise<boolean> {
  const row = await db.one<{ is_done: boolean }>(sql`
    select recount_reader(
      ${worker}::uuid, ${held.subscriber}::uuid, ${held.strand}::smallint, ${held.lease}::integer,
      ${range.from}::bigint, ${range.to}::bigint, ${range.fanned}::bigint) as is_done`);
  return row.is_done;
}

export async function giveUp(db: Db, worker: string, batch: GivenUp, nowMs: number): Promise<boolean> {
  const { letter } = batch;
  const row = await db.one<{ is_done: boolean }>(sql`
    select give_up(
      ${worker}::uuid, ${batch.subscriber}::uuid, ${batch.strand}::smallint, ${batch.lease}::integer,
      ${batch.from}::bigint, ${batch.to}::bigint, ${batch.sent}::integer,
      row(
        ${letter.id}::uuid, ${batch.subscriber}::uuid, ${letter.batch}::text, ${letter.first}::bigint,
        ${letter.last}::bigint, ${letter.events}::integer, ${letter.body}::text, ${letter.code}::text,
        ${letter.status}::integer, ${letter.attempts}::integer, ${toDate(letter.firstFailedAtMs)}::timestamptz,
        ${new Date(nowMs)}::timestamptz)::dead_letter,
      ${toDate(batch.runAtMs)}::timestamptz) as is_done`);
  return row.is_done;
}

export async function disable(
  db: Db,
  worker: string,
  held: HeldReader,
  why: { readonly reason: string; readonly nowMs: number },
): Promise<boolean> {
  const row = await db.one<{ is_done: boolean }>(sql`
    select disable_subscriber(
      ${worker}::uuid, ${held.subscriber}::uuid, ${held.strand}::smallint, ${held.lease}::integer, ${why.reason}::text,
      ${new Date(why.nowMs)}::timestamptz) as is_done`);
  return row.is_done;
}

export async function noteDeliveries(db: Db, rows: readonly DeliveryRow[]): Promise<void> {
  await db.exec(sql`
    insert into delivery (subscriber_id, at, batch, attempt, events, status, ms, code, excerpt)
    select *
      from unnest(
        ${rows.map((r) => r.subscriber)}::uuid[],
        ${rows.map((r) => new Date(r.atMs))}::timestamptz[],
        ${rows.map((r) => r.batch)}::text[],
        ${rows.map((r) => r.attempt)}::integer[],
        ${rows.map((r) => r.events)}::integer[],
        ${rows.map((r) => r.status)}::integer[],
        ${rows.map((r) => Math.round(r.ms))}::integer[],
        ${rows.map((r) => r.code)}::text[],
        ${rows.map((r) => r.excerpt)}::text[])`);
}

export async function countMinutes(db: Db, minutes: readonly SubscriberMinute[]): Promise<void> {
  await db.exec(sql`
    insert into subscriber_activity as a (at, subscriber_id, events, failed, latency_ms, worst_latency_ms)
    select *
      from unnest(
        ${minutes.map((m) => new Date(m.atMs))}::timestamptz[],
        ${minutes.map((m) => m.subscriber)}::uuid[],
        ${minutes.map((m) => m.events)}::bigint[],
        ${minutes.map((m) => m.failed)}::integer[],
        ${minutes.map((m) => Math.round(m.latencyMs))}::bigint[],
        ${minutes.map((m) => Math.round(m.worstMs))}::bigint[]) as m (at, subscriber_id)
     order by m.at, m.subscriber_id
    on conflict (at, subscriber_id) do update
       set events = a.events + excluded.events, failed = a.failed + excluded.failed,
           latency_ms = a.latency_ms + excluded.latency_ms,
           worst_latency_ms = greatest(a.worst_latency_ms, excluded.worst_latency_ms)`);
}

export async function mendErrands(db: Db): Promise<number> {
  return (await db.one<{ n: number }>(sql`select mend_errands() as n`)).n;
}
