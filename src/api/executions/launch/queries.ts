/** Statements about launches. */
import { type Db, sql } from '../../../kernel/sql.ts';

/** How many executions launched each other until the one of which this run performs a step. Undefined: it performs none. */
export async function findCallingDepth(db: Db, run: string): Promise<number | undefined> {
  const row = await db.maybeOne<{ depth: number }>(sql`
    select execution.depth
      from node_run
      join execution on execution.id = node_run.execution_id
     where node_run.run_id = ${run}`);
  return row?.depth;
}
