/** Errands as a test puts them into the hands of a worker, and counts what a worker holds. */
import { type Db, sql } from '../../src/kernel/sql.ts';

/** Gives all ready errands to a worker that was never heard of. */
export async function holdErrands(db: Db, worker: string): Promise<void> {
  await db.exec(sql`
    insert into errand_hold (queue, worker, taken_at, ids, last_id)
    select queue, ${worker}::uuid, ${new Date()}, range_agg(int8range(id, id, '[]')), max(id)
      from errand
     where state = 'r'
     group by queue`);
}

export async function countHeld(db: Db, worker: string | null): Promise<number> {
  const { n } = await db.one<{ n: number }>(sql`
    select count(*)::integer as n from held_errands(array[${worker}::uuid])`);
  return n;
}
