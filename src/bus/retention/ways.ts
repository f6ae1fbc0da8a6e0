/**
 * Counts the events on the ways that readers have gone since they were counted: those without a filter in one statement, the others
 * page by page, each page once for all of them. It happens under the locks of a drop, while fan-out waits.
 */
import { Slices } from '../../kernel/process/slices.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { elementOf } from '../delivery/subscriptions.ts';
import { readTopics } from '../postgres/log-queries.ts';
import type { BusEvent, RevisionRow } from '../store.ts';
import { strandOf } from '../strand.ts';
import { type BusElement, type Filter, matches, parseFilter } from '../subscribers/filters.ts';
import { eventPage, type LogRange } from '../subscribers/positions.ts';

export interface Way extends LogRange {
  readonly subscriber: string;
  readonly strand: number;
}

/** The part of a way for which one revision is in force. */
interface Stretch extends Way {
  /** The position of its way in the list. */
  readonly way: number;
  readonly topics: readonly number[];
  readonly strands: number;
}

interface FilteredStretch extends Stretch {
  readonly filter: Filter;
}

/** A gap between two stretches of fewer numbers is read with them. */
const nearby = 1_000;

/** Returns the events of each way, by the revisions in force at their numbers. `revisions`: the subscriber's, the oldest first. */
export async function countWays(
  db: Db,
  revisions: (subscriber: string) => readonly RevisionRow[],
  ways: readonly Way[],
): Promise<number[]> {
  const plain: Stretch[] = [];
  const filtered: FilteredStretch[] = [];
  for (const [n, way] of ways.entries())
    for (const [stretch, filter] of stretchesOf(n, way, revisions(way.subscriber)))
      if (filter === null) plain.push(stretch);
      else filtered.push({ ...stretch, filter });
  const counts = ways.map(() => 0);
  for (const { way, n } of await countPlain(db, plain)) counts[way] = (counts[way] ?? 0) + n;
  await countFiltered(db, filtered, (way) => {
    counts[way] = (counts[way] ?? 0) + 1;
  });
  return counts;
}

function stretchesOf(n: number, way: Way, revisions: readonly RevisionRow[]): [Stretch, Filter | null][] {
  return revisions.flatMap(({ fromSeq, topics, strands, filter }, i): [Stretch, Filter | null][] => {
    const from = Math.max(way.from, fromSeq);
    const to = Math.min(way.to, revisions[i + 1]?.fromSeq ?? way.to);
    if (from >= to || topics.length === 0) return [];
    return [[{ ...way, way: n, from, to, topics, strands }, filter === null ? null : parseFilter(filter)]];
  });
}

async function countPlain(db: Db, stretches: readonly Stretch[]): Promise<{ way: number; n: number }[]> {
  if (stretches.length === 0) return [];
  return db.rows<{ way: number; n: number }>(sql`
    select s.way, counted.n
      from jsonb_to_recordset(${JSON.stringify(stretches)}::jsonb)
           as s (way integer, subscriber uuid, strand integer, "from" bigint, "to" bigint, topics integer[], strands integer)
     cross join lateral (
       select count(*) as n
         from bus_event e
        where e.seq > s."from" and e.seq <= s."to" and e.topic_id = any (s.topics)
          and (e.target is null or e.target = s.subscriber)
          and (e.key_hash::bigint & 4294967295) % s.strands = s.strand) as counted`);
}

async function countFiltered(
  db: Db,
  stretches: readonly FilteredStretch[],
  onEvent: (way: number) => void,
): Promise<void> {
  const slices = new Slices();
  for (const group of groupNearby(stretches)) {
    const topics = [...new Set(group.flatMap((stretch) => stretch.topics))];
    const to = Math.max(...group.map((stretch) => stretch.to));
    for (let from = group[0]?.from ?? to; from < to; ) {
      const page = await readTopics(db, { after: from, to, topics }, eventPage);
      for (const event of page.events) {
        const element = elementOf(event);
        for (const { way } of group.filter((stretch) => isOn(stretch, event, element))) onEvent(way);
        if (slices.isOver) await slices.pause();
      }
      from = page.lookedTo;
    }
  }
}

function isOn(stretch: FilteredStretch, event: BusEvent, element: () => BusElement): boolean {
  const { from, to, topics, subscriber, strand, strands, filter } = stretch;
  if (event.seq <= from || event.seq > to || !topics.includes(event.topicId)) return false;
  if (event.target !== null && event.target !== subscriber) return false;
  return strandOf(event.keyHash, strands) === strand && matches(filter, element());
}

/** Stretches whose events are read together, in order of their beginnings. */
function groupNearby(stretches: readonly FilteredStretch[]): FilteredStretch[][] {
  const groups: FilteredStretch[][] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const stretch of stretches.toSorted((a, b) => a.from - b.from)) {
    const last = groups.at(-1);
    if (last === undefined || stretch.from > end + nearby) groups.push([stretch]);
    else last.push(stretch);
    end = Math.max(end, stretch.to);
  }
  return groups;
}
