/**
 * The readers that a dropped piece of the bus log leaves behind: which they are, and how many of their events are lost. Counting needs
 * the events, so it comes before the drop, and before any lock is taken.
 */
import { groupBy } from '../../kernel/group-by.ts';
import type { Db } from '../../kernel/sql.ts';
import { readRevisions } from '../postgres/log-queries.ts';
import type { RevisionRow } from '../store.ts';
import { addCounts, countEvents, type Counts, type LogRange } from '../subscribers/positions.ts';
import { type BehindReader, readBehind } from './drop-queries.ts';
import { countWays, type Way } from './ways.ts';

/** A reader behind, with its events from there to the end of the piece. */
interface CountedReader extends BehindReader {
  readonly lost: number;
}

export interface Gap {
  /** Of the subscriptions; after a change, everything is counted anew. */
  readonly revision: number;
  readonly readers: ReadonlyMap<string, CountedReader>;
  /** Events on ways, by the revisions in force at their numbers. */
  count(db: Db, ways: readonly Way[]): Promise<number[]>;
}

export const readerKey = ({ subscriber, strand }: Pick<BehindReader, 'subscriber' | 'strand'>): string =>
  `${subscriber} ${strand}`;

/** What readers lose if all events up to a number are dropped. */
export async function measureGap(db: Db, last: number): Promise<Gap> {
  const { state, revisions } = await readRevisions(db);
  const bySubscriber = groupBy(revisions, ({ subscriber }) => subscriber);
  const countIn = (subscriber: string, range: LogRange): Promise<Counts> =>
    countByRevisions(db, bySubscriber.get(subscriber) ?? [], range);
  const behind = groupBy(await readBehind(db, last), ({ subscriber }) => subscriber);
  const readers = new Map<string, CountedReader>();
  for (const [subscriber, strands] of behind)
    for (const reader of await countStrands(strands, last, (range) => countIn(subscriber, range)))
      readers.set(readerKey(reader), reader);
  return {
    revision: state.revision,
    readers,
    count: (on, ways) => countWays(on, (subscriber) => bySubscriber.get(subscriber) ?? [], ways),
  };
}

/** Walks from position to position, so that each event is read once for all strands. */
async function countStrands(
  strands: readonly BehindReader[],
  last: number,
  countIn: (range: LogRange) => Promise<Counts>,
): Promise<CountedReader[]> {
  const stops = [...new Set(strands.map(({ start }) => start))].toSorted((a, b) => a - b);
  const lost = new Map<number, number>();
  for (const [i, from] of stops.entries()) {
    const counts = await countIn({ from, to: stops[i + 1] ?? last });
    for (const { strand, start } of strands)
      if (start <= from) lost.set(strand, (lost.get(strand) ?? 0) + (counts.get(strand)?.count ?? 0));
  }
  return strands.map((reader) => ({ ...reader, lost: lost.get(reader.strand) ?? 0 }));
}

async function countByRevisions(db: Db, revisions: readonly RevisionRow[], { from, to }: LogRange): Promise<Counts> {
  const counts: Counts = new Map();
  for (const [i, revision] of revisions.entries()) {
    const range = { from: Math.max(from, revision.fromSeq), to: Math.min(to, revisions[i + 1]?.fromSeq ?? to) };
    const { topics, strands } = revision;
    const filter = revision.filter as Readonly<Record<string, unknown>> | null;
    addCounts(counts, await countEvents(db, revision.subscriber, { topics, filter, strands }, range));
  }
  return counts;
}
