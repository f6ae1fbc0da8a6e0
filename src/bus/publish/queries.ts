/** Statements of publishing. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { Appended, Group, KnownMark } from './group.ts';

type AppendedRow = {
  topic_ids: number[];
  base: number;
  numbers: (number | string)[] | null;
  known: [index: number, first: number, last: number, isOther: boolean][] | null;
};

/** Stores a group in one commit. Arrays are given as text, which the client does not have to escape item by item. */
export async function appendBus(db: Db, group: Group, at: Date): Promise<Appended> {
  const { claims, marks, hasTargets } = group;
  const of = <T>(map: (mark: (typeof marks)[number]) => T): T[] | null => (marks.length === 0 ? null : marks.map(map));
  const row = await db.one<AppendedRow>(sql`
    select topic_ids, base, numbers, known
      from append_bus(
        ${claims.map(({ topic }) => topic)}::text[],
        ${claims.map(({ owner }) => owner.id)}::uuid[],
        ${claims.map(({ owner }) => owner.name)}::text[],
        ${`{${group.claimOf.join(',')}}`}::integer[],
        ${`{${group.hashes.join(',')}}`}::integer[],
        ${group.bodies.join('\n')}::text,
        ${hasTargets ? group.targets : null}::uuid[],
        ${of(({ claim }) => claim)}::integer[],
        ${of(({ key }) => key)}::text[],
        ${of(({ first }) => first)}::integer[],
        ${of(({ last }) => last)}::integer[],
        ${of(({ digest }) => digest)}::bytea[],
        ${at}::timestamptz)`);
  const known = (row.known ?? []).map(([index, first, last, isOther]): [number, KnownMark] => [
    index,
    { first, last, isOther },
  ]);
  return {
    topicIds: row.topic_ids,
    base: row.base,
    numbers: row.numbers?.map(Number) ?? null,
    known: new Map(known),
  };
}

/** The ids of subscribers, by the names or ids that publishers use. */
export async function findTargets(db: Db, targets: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.rows<{ target: string; id: string }>(sql`
    select t.target, s.id
      from unnest(${targets}::text[]) as t (target)
      join subscriber s on s.name = t.target or s.id::text = lower(t.target)`);
  return new Map(rows.map(({ target, id }) => [target, id]));
}
