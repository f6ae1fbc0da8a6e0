/** Parts of statements that show errands to people. In the table a pending errand is a ready one whose number a hold names. */
import { type Sql, sql } from '../kernel/sql.ts';

/** Selects the hold of the errand `e`; no row: nobody holds it. */
export const holdOf: Sql = sql`
  select o.worker, o.taken_at
    from errand_hold o
   where o.queue = e.queue and e.state = 'r' and o.last_id >= e.id and e.id <@ o.ids
   limit 1`;

/** The state of the errand `e` with its hold `h`: s, r, x, or p for pending. */
export const displayedState: Sql = sql`case when h.worker is null then e.state else 'p' end::text`;

/** The pending errands `e` with their holds `h`, found from what is held: there may be a million ready ones. */
export const pendingErrands: Sql = sql`
  held_errands(array(select distinct worker from errand_hold)) h
  join errand e on e.queue = h.queue and e.key = h.key`;
