/** Statements about the tokens of a job. A page has a limited number of instants, which also bounds the rows read. */
import { type Db, empty, type Sql, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import { tokenState } from './token-state.ts';
import { latestIn } from './latest-instants.ts';

export type TokenRow = {
  readonly task_id: string;
  readonly task_name: string;
  readonly trigger_datetime: Date;
  readonly state: State;
};

export interface TokenPage {
  readonly states: readonly State[] | undefined;
  readonly before: Date | undefined;
  readonly limit: number;
}

/** Adds instants of unfinished runs and retries, however old, so that a backfill is visible. */
const underWay = (page: TokenPage): Sql => sql`
      union
      ${latestIn(sql`live`, page)}
      union
      ${latestIn(sql`retry`, page)}`;

/**
 * Tokens of the latest `limit` instants, newest first. A filter by state also covers older instants with queued or running
 * runs or scheduled retries.
 */
export function listTokens(db: Db, job: string, page: TokenPage): Promise<TokenRow[]> {
  return db.rows<TokenRow>(sql`
    with tasks as (
      select id, name
        from task
       where job_id = ${job} and removed_at is null
    ),
    instants as (
      (${latestIn(sql`token`, page)}
       order by latest.instant desc
       limit ${page.limit})
      ${page.states ? underWay(page) : empty}
    ),
    judged as (
      select tasks.id as task_id, tasks.name as task_name, t.instant as trigger_datetime, ${tokenState} as state
        from tasks
       cross join instants
        join token t on t.task_id = tasks.id and t.instant = instants.instant
    ),
    ranked as (
      select judged.*, dense_rank() over (order by trigger_datetime desc) as place
        from judged
       where ${page.states ? sql`state = any (${page.states}::text[])` : sql`true`}
    )
    select task_id, task_name, trigger_datetime, state
      from ranked
     where place <= ${page.limit}
     order by trigger_datetime desc, task_name`);
}

export type CountedToken = TokenRow & { readonly count: number; readonly threshold: number };

export function listTokensAt(db: Db, job: string, instant: Date): Promise<CountedToken[]> {
  return db.rows<CountedToken>(sql`
    select task.id as task_id, task.name as task_name, t.instant as trigger_datetime, ${tokenState} as state, t.count,
           task.threshold
      from task
      join token t on t.task_id = task.id
     where task.job_id = ${job} and task.removed_at is null and t.instant = ${instant}
     order by task.name`);
}

export async function clearTokens(db: Db, job: string, instant: Date, at: Date): Promise<number> {
  const row = await db.one<{ cleared: number }>(sql`
    select clear_tokens(${job}, ${instant}, ${at}) as cleared`);
  return row.cleared;
}
