/**
 * Statements of pull: batches that consumers hold. Each is one conditional write on one reader, together with its row of the delivery
 * log: what became of a hand-out is the row's `code` (`pullCodes`).
 */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { RevisionRow } from '../store.ts';

export type PulledReader = {
  readonly strand: number;
  readonly pos: number;
  readonly queued: number;
  readonly batch_end: number | null;
  /** How often the current batch was handed out. */
  readonly attempts: number;
  readonly leased_until: Date | null;
};

/** Of rows in the delivery log. The last two count as failures. */
export const pullCodes = {
  handedOut: 'handed_out',
  acknowledged: 'acked',
  givenBack: 'nacked',
  expired: 'lease_expired',
} as const;

interface PulledState {
  readonly fanned: number;
  readonly revision: number;
  readonly revisions: readonly RevisionRow[];
  /** The one whose events have waited for longest first. */
  readonly readers: readonly PulledReader[];
}

type StateRow = {
  readonly fanned: number;
  readonly revision: number;
  readonly revisions: RevisionRow[];
  readonly readers: (Omit<PulledReader, 'leased_until'> & { readonly leased_until: string | null })[];
};

/** One statement, so one snapshot: the revisions are final for events up to `fanned`. */
export async function readPulled(db: Db, subscriber: string): Promise<PulledState> {
  const row = await db.one<StateRow>(sql`
    select b.fanned, b.revision,
           (select coalesce(json_agg(json_build_object(
                     'subscriber', s.subscriber_id, 'fromSeq', s.from_seq, 'originSeq', s.origin_seq,
                     'version', s.version, 'topics', s.topics, 'filter', s.filter, 'maxEvents', s.max_events,
                     'maxBytes', s.max_bytes, 'windowMs', s.window_ms, 'quiet', s.quiet, 'strands', s.strands) order by s.from_seq), '[]')
              from subscription s
             where s.subscriber_id = ${subscriber}) as revisions,
           (select coalesce(json_agg(json_build_object(
                     'strand', r.strand, 'pos', r.pos, 'queued', r.queued, 'batch_end', r.batch_end, 'attempts', r.attempts,
                     'leased_until', r.leased_until) order by r.oldest_at, r.strand), '[]')
              from reader r
             where r.subscriber_id = ${subscriber}) as readers
      from bus_state b`);
  const readers = row.readers.map((reader) => ({
    ...reader,
    leased_until: reader.leased_until === null ? null : new Date(reader.leased_until),
  }));
  return { ...row, readers };
}

interface Lease {
  readonly id: string;
  readonly end: number;
  readonly events: number;
  readonly until: Date;
  readonly now: Date;
  /** Whether the delivery log keeps the hand-out. */
  readonly isLogged: boolean;
}

/** Returns how often the batch was handed out; undefined: the reader has moved, or another consumer has the batch. */
export async function leaseBatch(
  db: Db,
  subscriber: string,
  reader: PulledReader,
  lease: Lease,
): Promise<number | undefined> {
  const row = await db.maybeOne<{ attempts: number }>(sql`
    with former as (
      select r.subscriber_id, r.strand, r.leased_batch, r.leased_events, r.leased_until, r.leased_at, r.attempts
        from reader r
        join subscriber s on s.id = r.subscriber_id
       where s.kind = 'pull' and s.state = 'active'
         and r.subscriber_id = ${subscriber} and r.strand = ${reader.strand} and r.pos = ${reader.pos}
         and r.batch_end is not distinct from ${reader.batch_end}::bigint
         and (r.leased_until is null or r.leased_until <= ${lease.now})
         for update of r
    ),
    handed as (
      update reader r
         set batch_end = ${lease.end}, leased_batch = ${lease.id}, leased_events = ${lease.events}, leased_until = ${lease.until},
             leased_at = ${lease.now}, attempts = r.attempts + 1
        from former f
       where r.subscriber_id = f.subscriber_id and r.strand = f.strand
      returning r.subscriber_id, r.attempts
    ),
    logged as (
      insert into delivery (subscriber_id, at, batch, attempt, events, ms, code)
      ${expiredLease}
      union all
      select h.subscriber_id, ${lease.now}::timestamptz, ${lease.id}, h.attempts, ${lease.events}::integer, 0, ${pullCodes.handedOut}
        from handed h
       where ${lease.isLogged}::boolean
    )
    select attempts from handed`);
  return row?.attempts;
}

/** Milliseconds from the hand-out to its end. A consumer may hold a batch for longer than the 24 days that the column can store. */
const heldMs = (end: Sql) => sql`
  coalesce(least(extract(epoch from ${end} - f.leased_at) * 1000, 2147483647)::integer, 0)`;

/** The row of a hand-out whose lease ran out, from `former`. */
const expiredLease = sql`
      select f.subscriber_id, f.leased_until, f.leased_batch, f.attempts, f.leased_events,
             ${heldMs(sql`f.leased_until`)}, ${pullCodes.expired}
        from former f
       where f.leased_batch is not null`;

/** A consumer's message about its batch. Without `lease`, the batch alone counts. */
export interface HeldBatch {
  readonly subscriber: string;
  readonly id: string;
  readonly lease: number | undefined;
}

/** When a consumer spoke, and whether the delivery log keeps it. */
export interface Spoken {
  readonly now: Date;
  readonly isLogged: boolean;
}

const held = ({ subscriber, id, lease }: HeldBatch) => sql`
  subscriber_id = ${subscriber} and leased_batch = ${id} and (${lease ?? null}::integer is null or attempts = ${lease ?? null}::integer)`;

/** The reader of the batch, as it was before the change, locked. */
const former = (batch: HeldBatch) => sql`
      select subscriber_id, strand, leased_batch, leased_events, leased_at, attempts, batch_end, queued, oldest_at
        from reader
       where ${held(batch)}
         for update`;

/** The row of the delivery log about the end of a hand-out. */
const logOf = (code: string, { now, isLogged }: Spoken) => sql`
      insert into delivery (subscriber_id, at, batch, attempt, events, ms, code)
      select f.subscriber_id, ${now}::timestamptz, f.leased_batch, f.attempts, f.leased_events,
             ${heldMs(sql`${now}::timestamptz`)}, ${code}
        from former f
       where ${isLogged}::boolean`;

/** Moves the reader past the batch. Returns false if it is not the current one. */
export async function ackBatch(db: Db, batch: HeldBatch, spoken: Spoken): Promise<boolean> {
  const row = await db.maybeOne(sql`
    with former as (${former(batch)}),
    moved as (
      update reader r
         set pos = f.batch_end, queued = f.queued - f.leased_events, sent = r.sent + f.leased_events, batch_end = null, attempts = 0,
             failures = 0, first_failed_at = null, leased_batch = null, leased_events = null, leased_until = null,
             leased_at = null,
             oldest_at = case
               when f.queued > f.leased_events
               then coalesce((select e.at from bus_event e where e.seq > f.batch_end order by e.seq limit 1), f.oldest_at)
             end
        from former f
       where r.subscriber_id = f.subscriber_id and r.strand = f.strand
      returning r.strand
    ),
    logged as (${logOf(pullCodes.acknowledged, spoken)})
    select strand from moved`);
  return row !== undefined;
}

/** Gives the batch back, to be handed out at `until` or later. */
export async function nackBatch(db: Db, batch: HeldBatch, until: Date, now: Date): Promise<boolean> {
  const row = await db.maybeOne(sql`
    with former as (${former(batch)}),
    given as (
      update reader r
         set leased_batch = null, leased_events = null, leased_at = null, leased_until = ${until}
        from former f
       where r.subscriber_id = f.subscriber_id and r.strand = f.strand
      returning r.strand
    ),
    logged as (${logOf(pullCodes.givenBack, { now, isLogged: true })})
    select strand from given`);
  return row !== undefined;
}

export async function extendBatch(db: Db, batch: HeldBatch, until: Date): Promise<boolean> {
  const kept = await db.exec(sql`update reader set leased_until = ${until} where ${held(batch)}`);
  return kept > 0;
}

/** The subscriber changes between push and pull: nobody holds its batches any more. */
export async function endLeases(tx: Db, subscriber: string): Promise<void> {
  await tx.exec(sql`
    update reader set leased_batch = null, leased_events = null, leased_until = null, leased_at = null
     where subscriber_id = ${subscriber}`);
}

interface SetAside {
  readonly id: string;
  readonly batch: string;
  readonly first: number;
  readonly last: number;
  readonly events: number;
  readonly body: string;
  readonly at: Date;
}

/** Makes a dead letter of the batch and moves the reader past it, if the reader has not moved. */
export async function setAside(db: Db, subscriber: string, reader: PulledReader, letter: SetAside): Promise<void> {
  await db.exec(sql`
    with former as (
      select subscriber_id, strand, leased_batch, leased_events, leased_until, leased_at, attempts
        from reader
       where subscriber_id = ${subscriber} and strand = ${reader.strand} and pos = ${reader.pos}
         and attempts = ${reader.attempts} and leased_until <= ${letter.at}
         for update
    ),
    moved as (
      update reader r
         set pos = ${letter.last}, queued = r.queued - ${letter.events}::integer, batch_end = null, attempts = 0,
             leased_batch = null, leased_events = null, leased_until = null, leased_at = null,
             oldest_at = case when r.queued > ${letter.events}::integer then r.oldest_at end
        from former f
       where r.subscriber_id = f.subscriber_id and r.strand = f.strand
      returning r.subscriber_id
    ),
    logged as (
      insert into delivery (subscriber_id, at, batch, attempt, events, ms, code)
      ${expiredLease}
    )
    insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, body, code, attempts, at)
    select ${letter.id}::uuid, subscriber_id, ${letter.batch}, ${letter.first}::bigint, ${letter.last}::bigint,
           ${letter.events}::integer, ${letter.body}, 'not_acknowledged', ${reader.attempts}::integer, ${letter.at}::timestamptz
      from moved
    on conflict (subscriber_id, batch) do nothing`);
}
