/** Statements about work items. */
import { type Db, sql } from '../../kernel/sql.ts';

/** Open work items that are counted. */
const maxCounted = 1_000;

export async function countOpen(db: Db): Promise<number> {
  const row = await db.one<{ n: number }>(sql`
    select count(*)::integer as n
      from (select from workitem where ended_at is null limit ${maxCounted}) as open`);
  return row.n;
}
