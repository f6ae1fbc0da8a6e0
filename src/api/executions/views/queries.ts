/** Statements about the work of an execution's nodes. */
import { type Db, sql } from '../../../kernel/sql.ts';
import { maxNodes } from './nodes.ts';

export type WorkRow = {
  readonly kind: 'run' | 'workitem';
  readonly id: string;
  readonly nid: string;
  readonly attempt: number;
};

/** Runs and work items of these nodes: of each the newest attempt. */
export function listWork(db: Db, execution: string, nids: readonly string[]): Promise<WorkRow[]> {
  return db.rows<WorkRow>(sql`
    select 'run' as kind, run_id as id, nid, attempt
      from node_run
     where execution_id = ${execution}::uuid and nid = any (${nids}::text[])
    union all
    select 'workitem', id, nid, attempt
      from workitem
     where execution_id = ${execution}::uuid and nid = any (${nids}::text[])
     order by attempt desc
     limit ${2 * maxNodes}`);
}
