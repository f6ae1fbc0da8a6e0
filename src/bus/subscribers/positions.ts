/**
 * Moves a subscriber to another position: back, to receive events again, or ahead, to skip them.
 *
 * `reader.queued` is exact, because acknowledgements depend on it. So the events after the new position are counted, most of them
 * before any lock is taken: a filter may have to read each. Under the locks only those are counted that fan-out has passed
 * meanwhile. The whole range goes by the present subscription, because the former revisions may be gone.
 */
import { Slices } from '../../kernel/process/slices.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { elementOf } from '../delivery/subscriptions.ts';
import { readTopics } from '../postgres/log-queries.ts';
import type { BusEvent } from '../store.ts';
import { strandOf } from '../strand.ts';
import { type Filter, matches, parseFilter } from './filters.ts';
import type { Terms } from './revisions.ts';

/** What decides which events belong to a subscriber, and to which of its strands. */
type Matching = Pick<Terms, 'topics' | 'filter' | 'strands'>;

/** A point of the log: `now` (after the newest event), at the event with this number, or at a time. */
export type LogPoint = string | Date;

/** The number before the event at that point; undefined: the newest one. */
export async function positionAt(db: Db, point: LogPoint): Promise<number | undefined> {
  if (point === 'now') return undefined;
  if (typeof point === 'string') return Math.max(0, Number(point) - 1);
  return (await db.one<{ pos: number }>(sql`select find_bus_position(${point}::timestamptz) as pos`)).pos;
}

/** Events of one strand. */
interface StrandCount {
  readonly count: number;
  readonly oldest: Date;
}
export type Counts = Map<number, StrandCount>;

export interface LogRange {
  /** Exclusive. */
  readonly from: number;
  readonly to: number;
}

/** The fanned-out end of the log, and its oldest event, which changes when retention drops events. */
export function readLogEnds(db: Db): Promise<{ fanned: number; oldest: number }> {
  return db.one(sql`
    select fanned, coalesce((select min(seq) from bus_event), 0)::bigint as oldest from bus_state`);
}

export function addCounts(counts: Counts, more: Counts): void {
  for (const [strand, { count, oldest }] of more) {
    const known = counts.get(strand);
    counts.set(strand, { count: (known?.count ?? 0) + count, oldest: known?.oldest ?? oldest });
  }
}

/** Counts the subscriber's events in a range, by strand. */
export async function countEvents(db: Db, subscriber: string, terms: Matching, range: LogRange): Promise<Counts> {
  const counts: Counts = new Map();
  if (range.from >= range.to || terms.topics.length === 0) return counts;
  if (terms.filter === null) {
    for (const row of await countAll(db, subscriber, terms, range)) counts.set(row.strand, row);
    return counts;
  }
  const filter = parseFilter(terms.filter);
  for (let { from } = range; from < range.to; ) {
    const page = await readTopics(db, { after: from, to: range.to, topics: terms.topics }, eventPage);
    const own = page.events.filter(({ target }) => target === null || target === subscriber);
    addCounts(counts, await countMatching(own, filter, terms.strands));
    from = page.lookedTo;
  }
  return counts;
}

/** Events that are read at once: a few milliseconds of parsing. */
export const eventPage = { events: 1_000, bytes: 256 * 1024 };

const strandColumn = (terms: Matching) => sql`((e.key_hash::bigint & 4294967295) % ${terms.strands}::integer)::integer`;

function countAll(db: Db, subscriber: string, terms: Matching, { from, to }: LogRange) {
  return db.rows<{ strand: number; count: number; oldest: Date }>(sql`
    select ${strandColumn(terms)} as strand, count(*) as count, min(e.at) as oldest
      from bus_event e
     where e.seq > ${from} and e.seq <= ${to} and e.topic_id = any (${terms.topics}::integer[])
       and (e.target is null or e.target = ${subscriber})
     group by 1`);
}

async function countMatching(events: readonly BusEvent[], filter: Filter, strands: number): Promise<Counts> {
  const counts: Counts = new Map();
  const slices = new Slices();
  for (const event of events) {
    if (matches(filter, elementOf(event)())) {
      const strand = strandOf(event.keyHash, strands);
      const known = counts.get(strand);
      counts.set(strand, { count: (known?.count ?? 0) + 1, oldest: known?.oldest ?? new Date(event.atMs) });
    }
    if (slices.isOver) await slices.pause();
  }
  return counts;
}

/** Places all readers at `from`, as the last step of a transaction that has locked everything else. */
export async function placeReaders(
  tx: Db,
  subscriber: string,
  from: number | undefined,
  counts: Counts,
): Promise<number> {
  const strands = [...counts];
  const row = await tx.one<{ pos: number }>(sql`
    select place_readers(
      ${subscriber}::uuid, ${from ?? null}::bigint, ${strands.map(([strand]) => strand)}::smallint[],
      ${strands.map(([, { count }]) => count)}::bigint[], ${strands.map(([, { oldest }]) => oldest)}::timestamptz[]) as pos`);
  return row.pos;
}
