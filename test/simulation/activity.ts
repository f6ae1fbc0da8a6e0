/** The oracle of activity: at the end, the counts per minute must agree with the runs. */
import { type Db, sql } from '../../src/kernel/sql.ts';

type Ends = { at: Date; run: string; activity: string };

/** Returns a fault for each minute whose activity and runs differ. */
export async function judgeActivity(db: Db): Promise<string[]> {
  const rows = await db.rows<Ends>(sql`
    select coalesce(r.at, a.at) as at, coalesce(r.ends, 'nothing') as run, coalesce(a.ends, 'nothing') as activity
      from (
        select date_trunc('minute', finished_at) as at,
               concat_ws(' ', count(*) filter (where state = 'success'), count(*) filter (where state = 'failure'),
                         count(*) filter (where state = 'timeout'), count(*) filter (where state = 'error'),
                         count(*) filter (where state = 'cancelled'), count(started_at)) as ends
          from run
         group by 1
      ) as r
      full join (
        select at, concat_ws(' ', success, failure, timeout, error, cancelled, started) as ends
          from activity
         where success + failure + timeout + error + cancelled + started > 0
      ) as a on a.at = r.at
     where r.ends is distinct from a.ends
     order by 1`);
  return rows.map(
    ({ at, run, activity }) => `minute ${at.toISOString()}: the runs add up to ${run}, its activity to ${activity}`,
  );
}
