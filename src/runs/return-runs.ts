/** Gives claimed runs back unfinished: they are handed out again, and it does not count as a loss. */
import { type Db, type Sql, sql } from '../kernel/sql.ts';

export interface HandOut {
  readonly run: string;
  readonly lease: number;
  /** The worker that says it holds the run; left out, any does. */
  readonly worker?: string;
}

/** Answers how many were held under these leases. */
export async function returnRuns(db: Db, runs: readonly HandOut[], at: Date): Promise<number> {
  const { n } = await db.one<{ n: number }>(sql`
    select return_runs(${runs.map((r) => r.run)}::uuid[], ${heldLeases(runs)}, ${at}::timestamptz) as n`);
  return n;
}

/**
 * The leases as an array, with null in place of each that another worker holds: null matches no run. A lease has one
 * holder for all its life, so this cannot change between here and the lock of the run.
 */
export function heldLeases(runs: readonly HandOut[]): Sql {
  return sql`
    array(
      select (select live.lease
                from live
               where live.id = r.id and live.lease = r.lease and live.worker_id = coalesce(r.worker, live.worker_id))
        from unnest(
          ${runs.map((r) => r.run)}::uuid[],
          ${runs.map((r) => r.lease)}::integer[],
          ${runs.map((r) => r.worker ?? null)}::uuid[]
        ) with ordinality as r (id, lease, worker, n)
       order by r.n)`;
}
