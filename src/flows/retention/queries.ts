/** Statements of retention that find and delete executions. Each reads and deletes a bounded number of rows. */
import { type Db, sql } from '../../kernel/sql.ts';

/** Executions that ended before then, the oldest first. */
export async function findEnded(db: Db, before: Date, limit: number): Promise<string[]> {
  const rows = await db.rows<{ id: string }>(sql`
    select id from execution where ended_at < ${before}::timestamptz order by ended_at limit ${limit}`);
  return rows.map(({ id }) => id);
}

export type FlowSurplus = {
  readonly flow: string;
  /** Ended executions beyond the newest ones that are kept. */
  readonly executions: string[] | null;
};

/** Of the next flows by id, ended executions beyond the newest `keep`. */
export function findSurplus(
  db: Db,
  {
    after,
    flows,
    keep,
    limit,
  }: { readonly after: string; readonly flows: number; readonly keep: number; readonly limit: number },
): Promise<FlowSurplus[]> {
  return db.rows<FlowSurplus>(sql`
    select f.id as flow,
           (select array_agg(e.id)
              from (select id from execution
                     where flow_id = f.id and status > 2
                     order by id desc
                    offset ${keep} limit ${limit}) as e) as executions
      from (select id from flow where id > ${after}::uuid order by id limit ${flows}) as f
     order by f.id`);
}

export type Forgotten = { readonly executions: number; readonly rows: number; readonly more: boolean };

export function forgetExecutions(db: Db, ids: readonly string[], rows: number): Promise<Forgotten> {
  return db.one<Forgotten>(sql`
    select executions, rows, more from forget_executions(${ids}::uuid[], ${rows}::integer)`);
}

export type SnapshotPage = { readonly id: string; readonly rev: number };

/** The next executions by id that have a snapshot and have not ended. */
export function findLongOnes(db: Db, after: string, limit: number): Promise<SnapshotPage[]> {
  return db.rows<SnapshotPage>(sql`
    select s.execution_id as id, s.rev
      from snapshot s
      join execution e on e.id = s.execution_id and e.status < 3
     where s.execution_id > ${after}::uuid
     order by s.execution_id
     limit ${limit}`);
}

/** Deletes commits that a snapshot has made superfluous, if they are older than that. */
export function forgetCommits(db: Db, page: readonly SnapshotPage[], before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from commit
     where ctid = any (array(
       select c.ctid
         from unnest(${page.map(({ id }) => id)}::uuid[], ${page.map(({ rev }) => rev)}::integer[]) as u (id, rev)
        cross join lateral (
          select c.ctid from commit c
           where c.execution_id = u.id and c.rev <= u.rev and c.at < ${before}::timestamptz
           limit ${limit}
        ) as c
        limit ${limit}))`);
}
