/** Statements about the bus log and its subscriptions. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { BusEvent, BusState, FannedOut, FanOut, PageLimits } from '../store.ts';
import { type PageRow, type SubscriptionRow, toEvents, toRevisions } from './rows.ts';

export function readState(db: Db): Promise<BusState> {
  return db.one<BusState & object>(sql`select fanned, revision from bus_state where one`);
}

/** One statement, so one snapshot: no revision is older than the state. */
export async function readRevisions(
  db: Db,
): Promise<{ readonly state: BusState; readonly revisions: ReturnType<typeof toRevisions> }> {
  const rows = await db.rows<SubscriptionRow>(sql`
    select b.fanned, b.revision, s.subscriber_id, s.from_seq, s.origin_seq, s.version, s.topics, s.filter, s.max_events,
           s.max_bytes, s.window_ms, s.quiet, s.strands
      from bus_state b
      left join subscription s on true
     where b.one
     order by s.subscriber_id, s.from_seq`);
  const [first] = rows;
  if (first === undefined) throw new Error('the table bus_state is empty');
  return { state: { fanned: first.fanned, revision: first.revision }, revisions: toRevisions(rows) };
}

export async function readPage(db: Db, after: number, to: number, limits: PageLimits): Promise<BusEvent[]> {
  const row = await db.one<PageRow>(sql`
    select numbers, topics, hashes, targets, times, bodies
      from read_bus_page(${after}::bigint, ${to}::bigint, ${limits.events}::integer, ${limits.bytes}::integer)`);
  return toEvents(row);
}

export async function readTopics(
  db: Db,
  range: { readonly after: number; readonly to: number; readonly topics: readonly number[] },
  limits: PageLimits,
): Promise<{ events: BusEvent[]; lookedTo: number }> {
  const row = await db.one<PageRow & { readonly looked_to: number }>(sql`
    select numbers, topics, hashes, targets, times, bodies, looked_to
      from read_bus_topics(
        ${range.after}::bigint, ${range.to}::bigint, ${range.topics}::integer[], ${limits.events}::integer,
        ${limits.bytes}::integer)`);
  return { events: toEvents(row), lookedTo: row.looked_to };
}

type FanOutRow = {
  readonly moved: boolean;
  readonly keys: string[] | null;
  readonly leases: number[] | null;
  readonly next_due: Date | null;
};

export async function fanOut(db: Db, worker: string, page: FanOut): Promise<FannedOut> {
  const { readers } = page;
  const row = await db.one<FanOutRow>(sql`
    select moved, keys, leases, next_due
      from fan_out(
        ${page.from}::bigint,
        ${page.to}::bigint,
        ${page.revision}::bigint,
        ${readers.map((r) => r.subscriber)}::uuid[],
        ${readers.map((r) => r.strand)}::smallint[],
        ${readers.map((r) => r.events)}::integer[],
        ${readers.map((r) => new Date(r.firstAtMs))}::timestamptz[],
        ${readers.map((r) => new Date(r.dueAtMs))}::timestamptz[],
        ${readers.map((r) => r.maxEvents)}::integer[],
        ${readers.map((r) => r.isFull)}::boolean[],
        ${worker}::uuid,
        ${page.room}::integer,
        ${new Date(page.nowMs)}::timestamptz)`);
  const leases = row.leases ?? [];
  return {
    isMoved: row.moved,
    taken: (row.keys ?? []).map((key, i) => ({ key, lease: leases[i] ?? 0 })),
    nextDueAtMs: row.next_due?.getTime(),
  };
}
