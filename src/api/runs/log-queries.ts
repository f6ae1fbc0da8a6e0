/** Statements that read a run's output. */
import { type Db, sql } from '../../kernel/sql.ts';

export interface LogPosition {
  readonly lease: number;
  readonly number: number;
}

export type LogRow = LogPosition & { readonly data: Buffer };

/** Reads the next chunks, about 1 MiB, so that the whole output need not fit in memory. */
export function readLog(db: Db, run: string, after: LogPosition): Promise<LogRow[]> {
  return db.rows<LogRow>(sql`
    with ahead as (
      select lease, number, data
        from log
       where run_id = ${run} and (lease, number) > (${after.lease}, ${after.number})
       order by lease, number
       limit 1000
    ),
    measured as (
      select ahead.*, sum(octet_length(data)) over (order by lease, number) - octet_length(data) as bytes_before
        from ahead
    )
    select lease, number, data
      from measured
     where bytes_before < 1048576
     order by lease, number`);
}

/** The last chunk that ends within the first `bytes` of the output, and its end. */
export async function findLogPlace(
  db: Db,
  run: string,
  bytes: number,
): Promise<(LogPosition & { readonly end: number }) | undefined> {
  return db.maybeOne(sql`
    select lease, number, "end"
      from (
        select lease, number, sum(octet_length(data)) over (order by lease, number)::float8 as "end"
          from log
         where run_id = ${run}
      ) as measured
     where "end" <= ${bytes}
     order by lease desc, number desc
     limit 1`);
}

export async function isLive(db: Db, run: string): Promise<boolean> {
  return (await db.maybeOne(sql`select 1 from live where id = ${run}`)) !== undefined;
}
