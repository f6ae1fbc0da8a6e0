/** Gives claimed runs back unfinished: they are handed out again, and it does not count as a loss. */
import { type Db, sql } from '../kernel/sql.ts';

export interface ReturnedRun {
  readonly run: string;
  readonly lease: number;
}

/** Answers how many were held under these leases. */
export async function returnRuns(db: Db, runs: readonly ReturnedRun[], at: Date): Promise<number> {
  const [ids, leases] = [runs.map((r) => r.run), runs.map((r) => r.lease)];
  const { n } = await db.one<{ n: number }>(sql`
    select return_runs(${ids}::uuid[], ${leases}::integer[], ${at}::timestamptz) as n`);
  return n;
}
