/**
 * Statements that list runs a page at a time. There are two lists, each in the order of an index, so that the cost of a page
 * does not depend on the history:
 *
 * 1. Runs of the whole tenant, by id, which is the order in which they were queued.
 * 2. Runs of some tasks: first queued and running runs, by id; then finished runs, latest first.
 */
import { finalStates } from '../../contract/wire.ts';
import { allOf, type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import { type FullRun, liveColumns, runColumns, withNames } from './queries.ts';

interface Filter {
  readonly instant: Date | undefined;
  readonly states: readonly State[] | undefined;
  readonly limit: number;
}

const liveConditions = ({ instant, states }: Filter): Sql[] => [
  instant ? sql`live.instant = ${instant}` : sql`true`,
  states ? sql`case when live.worker_id is null then 'active' else 'running' end = any (${states}::text[])` : sql`true`,
];

const final = new Set<State>(finalStates);

/** Skips finished runs if the filter names no final state. */
function runStates({ states }: Filter): Sql {
  if (states === undefined) return sql`true`;
  const wanted = states.filter((state) => final.has(state));
  return wanted.length === 0 ? sql`false` : sql`run.state = any (${wanted}::run_state[])`;
}

export interface RunFilter extends Filter {
  /** Ids below this, exclusive. */
  readonly before: string | undefined;
  /** Ids from this on, inclusive. */
  readonly from: string | undefined;
}

/** Runs of the whole tenant, newest first. */
export function listRuns(db: Db, filter: RunFilter): Promise<FullRun[]> {
  const { instant, before, from, limit } = filter;
  const live = allOf([
    ...liveConditions(filter),
    before === undefined ? sql`true` : sql`live.id < ${before}`,
    from === undefined ? sql`true` : sql`live.id >= ${from}`,
  ]);
  const run = allOf([
    runStates(filter),
    instant ? sql`run.instant = ${instant}` : sql`true`,
    before === undefined ? sql`true` : sql`run.id < ${before}`,
    from === undefined ? sql`true` : sql`run.id >= ${from}`,
  ]);
  return db.rows<FullRun>(sql`
    ${withNames(sql`
        (select ${liveColumns} from live where ${live} order by live.id desc limit ${limit})
        union all
        (select ${runColumns} from run where ${run} order by run.id desc limit ${limit})
         order by id desc
         limit ${limit}`)}
     order by r.id desc`);
}

/** The id of the `size`-th finished run below `before`; undefined if there are fewer. */
export async function findWindowEnd(db: Db, before: string | undefined, size: number): Promise<string | undefined> {
  const row = await db.maybeOne<{ id: string }>(sql`
    select id
      from run
     where ${before === undefined ? sql`true` : sql`id < ${before}`}
     order by id desc
    offset ${size - 1}
     limit 1`);
  return row?.id;
}

/** The smallest id. As a cursor, it skips all remaining runs of its millisecond. */
export const firstId = '00000000-0000-0000-0000-000000000000';

/** The last run of the previous page: an unfinished (`live`) or a finished (`ended`) one. */
export type Place =
  | { readonly part: 'live'; readonly id: string }
  | { readonly part: 'ended'; readonly at: Date; readonly id: string };

export interface TaskRunFilter extends Filter {
  readonly tasks: readonly string[];
  readonly after: Place | undefined;
  /** Runs that ended before this are not scanned. */
  readonly from: Date | undefined;
}

/** The end of the `size`-th latest run of these tasks after that place; undefined if there are fewer. */
export async function findEndFloor(
  db: Db,
  { tasks, after }: Pick<TaskRunFilter, 'tasks' | 'after'>,
  size: number,
): Promise<Date | undefined> {
  const ended = after?.part === 'ended' ? after : undefined;
  const upTo = ended
    ? ended.id === firstId
      ? sql`run.finished_at < ${ended.at}`
      : sql`run.finished_at <= ${ended.at}`
    : sql`true`;
  const row = await db.maybeOne<{ finished_at: Date }>(sql`
    select latest.finished_at
      from unnest(${tasks}::uuid[]) as t (id)
     cross join lateral (
       select run.finished_at
         from run
        where run.task_id = t.id and ${upTo}
        order by run.finished_at desc
        limit ${size}
     ) as latest
     order by latest.finished_at desc
    offset ${size - 1}
     limit 1`);
  return row?.finished_at;
}

/** Runs of these tasks: unfinished runs, then finished runs, latest first. */
export function listRunsOfTasks(db: Db, filter: TaskRunFilter): Promise<FullRun[]> {
  const { limit } = filter;
  return db.rows<FullRun>(sql`
    ${withNames(sql`
        (${liveOf(filter)} order by live.id desc limit ${limit})
        union all
        (${endedOf(filter)} order by finished_at desc, id desc limit ${limit})
         order by finished_at desc nulls first, id desc
         limit ${limit}`)}
     order by r.finished_at desc nulls first, r.id desc`);
}

function liveOf(filter: TaskRunFilter): Sql {
  const { tasks, after } = filter;
  const further = {
    start: sql`true`,
    live: after ? sql`live.id < ${after.id}` : sql`true`,
    ended: sql`false`,
  }[after?.part ?? 'start'];
  const wanted = [sql`live.task_id = any (${tasks}::uuid[])`, further, ...liveConditions(filter)];
  return sql`select ${liveColumns} from live where ${allOf(wanted)}`;
}

/** A task has few runs at an instant, and an index for them. With a limit, the planner might walk the task's history instead. */
function endedOf(filter: TaskRunFilter): Sql {
  const { tasks, after, instant, from } = filter;
  const wanted = [
    sql`run.task_id = t.id`,
    runStates(filter),
    from ? sql`run.finished_at >= ${from}` : sql`true`,
    after?.part === 'ended'
      ? sql`run.finished_at <= ${after.at} and (run.finished_at < ${after.at} or run.id < ${after.id})`
      : sql`true`,
    instant ? sql`run.instant = ${instant}` : sql`true`,
  ];
  return sql`
        select ended.*
          from unnest(${tasks}::uuid[]) as t (id)
         cross join lateral (select ${runColumns} from run where ${allOf(wanted)} offset 0) as ended`;
}
