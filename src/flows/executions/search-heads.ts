/**
 * Searches executions, newest first, at a bounded cost however many there are.
 *
 * 1. A search for executions that have not ended reads those, if they are not very many.
 * 2. Any other search walks along one index: of a key, a parent, a label, a flow, or of all. A page walks over a bounded number of
 *    executions. It may therefore be short or empty, and still have a `next`.
 * 3. Ids begin with the time of creation, so that a search by time begins and ends at ids.
 */
import { allOf, type Db, empty, type Sql, sql } from '../../kernel/sql.ts';
import { type Head, headColumns, type HeadRow, type Status, statuses, toHead } from './heads.ts';
import { labelText } from './labels.ts';

export interface HeadFilter {
  /** The name of a flow. Executions of deleted flows of this name are found, too. */
  readonly flow?: string | undefined;
  readonly version?: number | undefined;
  readonly status?: readonly Status[] | undefined;
  readonly label?: { readonly name: string; readonly value: string } | undefined;
  readonly key?: string | undefined;
  readonly parent?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
  /** `next` of the page before. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface HeadPage {
  readonly heads: readonly Head[];
  /** The `cursor` of the next page; null: there is none. */
  readonly next: string | null;
}

/** Executions that one page walks over, or sorts: 20 to 50 ms. */
const maxWalked = 20_000;
/** Clocks of processes that make ids differ by less. */
const clockSlackMs = 600_000;

export async function searchHeads(db: Db, filter: HeadFilter, walk = maxWalked): Promise<HeadPage> {
  const isFixed = filter.key !== undefined || filter.parent !== undefined;
  const isUnended = filter.status?.every((status) => statuses.indexOf(status) < statuses.indexOf('done')) ?? false;
  if (isUnended && !isFixed) {
    const page = await searchUnended(db, filter, walk);
    if (page !== undefined) return page;
  }
  return walkIndex(db, filter, walk);
}

/** Undefined: too many have not ended. */
async function searchUnended(db: Db, filter: HeadFilter, walk: number): Promise<HeadPage | undefined> {
  // the order makes the index of these the way to find them
  const live = sql`select id from execution where status < 3 order by owner limit ${walk + 1}`;
  const { n } = await db.one<{ n: number }>(sql`select count(*)::integer as n from (${live}) as live`);
  if (n > walk) return undefined;
  const rows = await db.rows<HeadRow>(sql`
    with live as materialized (${live})
    select ${headColumns}
      from live
      join execution e on e.id = live.id
      join flow f on f.id = e.flow_id
     where ${allOf([...conditionsOf(filter), ...bounds(sql`e.id`, filter)])}
     order by e.id desc
     limit ${filter.limit + 1}`);
  return pageOf(rows, filter.limit, null);
}

type WalkedRow = { readonly walked: number; readonly floor: string | null } & {
  [K in keyof HeadRow]: HeadRow[K] | null;
};

async function walkIndex(db: Db, filter: HeadFilter, walk: number): Promise<HeadPage> {
  const rows = await db.rows<WalkedRow>(sql`
    with walked as materialized (${walkOf(filter, walk)})
    select extent.walked, extent.floor, found.*
      from (select count(*)::integer as walked, min(id::text)::uuid as floor from walked) as extent
      left join lateral (
        select ${headColumns}
          from walked
          join execution e on e.id = walked.id
          join flow f on f.id = e.flow_id
         where ${allOf(conditionsOf(filter))}
         order by e.id desc
         limit ${filter.limit + 1}
      ) as found on true`);
  const found = rows.filter((row): row is WalkedRow & HeadRow => row.id !== null);
  const [extent] = rows;
  return pageOf(found, filter.limit, extent !== undefined && extent.walked >= walk ? extent.floor : null);
}

/** `end`: where a walk has stopped; null: at the last one. */
function pageOf(rows: readonly HeadRow[], limit: number, end: string | null): HeadPage {
  const shown = rows.slice(0, limit);
  return { heads: shown.map(toHead), next: rows.length > limit ? (shown.at(-1)?.id ?? null) : end };
}

/** The ids along the index that fits best, newest first. */
function walkOf({ key, parent, label, flow, ...filter }: HeadFilter, walk: number): Sql {
  const inBounds = (id: Sql): Sql => allOf(bounds(id, filter));
  if (key !== undefined) return sql`select e.id from execution e where e.key = ${key} and ${inBounds(sql`e.id`)}`;
  if (parent !== undefined)
    return sql`
      select e.id from execution e
       where e.parent = ${parent}::uuid and ${inBounds(sql`e.id`)}
       order by e.id desc
       limit ${walk}`;
  if (label !== undefined)
    return sql`
      select l.execution_id as id from label l
       where l.name = ${label.name} and l.value = ${labelText(label.value)} and ${inBounds(sql`l.execution_id`)}
       order by l.execution_id desc
       limit ${walk}`;
  if (flow !== undefined)
    return sql`
      select own.id
        from flow named
       cross join lateral (
         select e.id from execution e
          where e.flow_id = named.id and ${inBounds(sql`e.id`)}
          order by e.id desc
          limit ${walk}
       ) as own
       where named.name = ${flow}
       order by own.id desc
       limit ${walk}`;
  return sql`select e.id from execution e where ${inBounds(sql`e.id`)} order by e.id desc limit ${walk}`;
}

function bounds(id: Sql, { cursor, createdAfter, createdBefore }: Partial<HeadFilter>): Sql[] {
  return [
    cursor === undefined ? empty : sql`${id} < ${cursor}::uuid`,
    createdAfter === undefined ? empty : sql`${id} >= ${firstId(createdAfter.getTime() - clockSlackMs)}::uuid`,
    createdBefore === undefined ? empty : sql`${id} < ${firstId(createdBefore.getTime() + clockSlackMs)}::uuid`,
  ].filter((condition) => condition !== empty);
}

/** The lowest id of a time. */
function firstId(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
}

function conditionsOf({ flow, version, status, label, key, parent, createdAfter, createdBefore }: HeadFilter): Sql[] {
  return [
    flow === undefined ? empty : sql`f.name = ${flow}`,
    version === undefined ? empty : sql`e.version = ${version}`,
    status === undefined ? empty : hasStatus(status),
    key === undefined ? empty : sql`e.key = ${key}`,
    parent === undefined ? empty : sql`e.parent = ${parent}::uuid`,
    createdAfter === undefined ? empty : sql`e.created_at >= ${createdAfter}::timestamptz`,
    createdBefore === undefined ? empty : sql`e.created_at < ${createdBefore}::timestamptz`,
    label === undefined
      ? empty
      : sql`exists (select from label l
                     where l.execution_id = e.id and l.name = ${label.name} and l.value = ${labelText(label.value)})`,
  ].filter((condition) => condition !== empty);
}

function hasStatus(wanted: readonly Status[]): Sql {
  const others = wanted.filter((status) => status !== 'running' && status !== 'waiting');
  const numbers = others.map((status) => statuses.indexOf(status) - 1);
  const isBusy = sql`(e.rev = 0 or e.calls + e.tasks > 0)`;
  const [running, waiting] = [wanted.includes('running'), wanted.includes('waiting')];
  if (!running && !waiting) return sql`e.status = any (${numbers}::smallint[])`;
  if (running && waiting) return sql`(e.status = 0 or e.status = any (${numbers}::smallint[]))`;
  const live = running ? isBusy : sql`not ${isBusy}`;
  return sql`(e.status = 0 and ${live} or e.status = any (${numbers}::smallint[]))`;
}
