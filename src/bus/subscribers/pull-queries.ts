/** Statements of pull: batches that consumers hold. Each is one conditional write on one reader. */
import { type Db, sql } from '../../kernel/sql.ts';
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
                     'subscriber', s.subscriber_id, 'fromSeq', s.from_seq, 'topics', s.topics, 'filter', s.filter,
                     'maxEvents', s.max_events, 'maxBytes', s.max_bytes, 'windowMs', s.window_ms, 'quiet', s.quiet,
                     'strands', s.strands) order by s.from_seq), '[]')
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
}

/** Returns how often the batch was handed out; undefined: the reader has moved, or another consumer has the batch. */
export async function leaseBatch(
  db: Db,
  subscriber: string,
  reader: PulledReader,
  lease: Lease,
): Promise<number | undefined> {
  const row = await db.maybeOne<{ attempts: number }>(sql`
    update reader r
       set batch_end = ${lease.end}, leased_batch = ${lease.id}, leased_events = ${lease.events}, leased_until = ${lease.until},
           attempts = r.attempts + 1
      from subscriber s
     where s.id = r.subscriber_id and s.kind = 'pull' and s.state = 'active'
       and r.subscriber_id = ${subscriber} and r.strand = ${reader.strand} and r.pos = ${reader.pos}
       and r.batch_end is not distinct from ${reader.batch_end}::bigint
       and (r.leased_until is null or r.leased_until <= ${lease.now})
    returning r.attempts`);
  return row?.attempts;
}

/** A consumer's message about its batch. Without `lease`, the batch alone counts. */
export interface HeldBatch {
  readonly subscriber: string;
  readonly id: string;
  readonly lease: number | undefined;
}

const held = ({ subscriber, id, lease }: HeldBatch) => sql`
  subscriber_id = ${subscriber} and leased_batch = ${id} and (${lease ?? null}::integer is null or attempts = ${lease ?? null}::integer)`;

/** Moves the reader past the batch. Returns false if it is not the current one. */
export async function ackBatch(db: Db, batch: HeldBatch): Promise<boolean> {
  const moved = await db.exec(sql`
    update reader
       set pos = batch_end, queued = queued - leased_events, sent = sent + leased_events, batch_end = null, attempts = 0,
           failures = 0, first_failed_at = null, leased_batch = null, leased_events = null, leased_until = null,
           oldest_at = case
             when queued > leased_events
             then coalesce((select e.at from bus_event e where e.seq > batch_end order by e.seq limit 1), oldest_at)
           end
     where ${held(batch)}`);
  return moved > 0;
}

/** Gives the batch back, to be handed out at `until` or later. */
export async function nackBatch(db: Db, batch: HeldBatch, until: Date): Promise<boolean> {
  const given = await db.exec(sql`
    update reader set leased_batch = null, leased_events = null, leased_until = ${until} where ${held(batch)}`);
  return given > 0;
}

export async function extendBatch(db: Db, batch: HeldBatch, until: Date): Promise<boolean> {
  const kept = await db.exec(sql`update reader set leased_until = ${until} where ${held(batch)}`);
  return kept > 0;
}

/** The subscriber changes between push and pull: nobody holds its batches any more. */
export async function endLeases(tx: Db, subscriber: string): Promise<void> {
  await tx.exec(sql`
    update reader set leased_batch = null, leased_events = null, leased_until = null where subscriber_id = ${subscriber}`);
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
    with moved as (
      update reader
         set pos = ${letter.last}, queued = queued - ${letter.events}::integer, batch_end = null, attempts = 0,
             leased_batch = null, leased_events = null, leased_until = null,
             oldest_at = case when queued > ${letter.events}::integer then oldest_at end
       where subscriber_id = ${subscriber} and strand = ${reader.strand} and pos = ${reader.pos}
         and attempts = ${reader.attempts} and leased_until <= ${letter.at}
      returning subscriber_id
    )
    insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, body, code, attempts, at)
    select ${letter.id}::uuid, subscriber_id, ${letter.batch}, ${letter.first}::bigint, ${letter.last}::bigint,
           ${letter.events}::integer, ${letter.body}, 'not_acknowledged', ${reader.attempts}::integer, ${letter.at}::timestamptz
      from moved
    on conflict (subscriber_id, batch) do nothing`);
}
