/** Work items of people, stored as an engine of flows does it. */
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';

export interface ItemPlan {
  readonly execution: string;
  readonly nid?: string;
  readonly attempt?: number;
  readonly title?: string;
  readonly assignee?: string | null;
  readonly team?: string | null;
  readonly form?: object;
  readonly input?: object;
  readonly ended?: boolean;
}

/** Returns the id of the item. */
export async function makeItem(db: Db, at: Date, plan: ItemPlan): Promise<string> {
  const id = newId();
  const { execution, nid = '0_1-2', attempt = 1, title = 'Expense e1', assignee = 'meg', team = null } = plan;
  const { form = { approved: 'boolean', comment: 'text' }, input = {}, ended = false } = plan;
  await db.exec(sql`
    insert into workitem (id, execution_id, nid, attempt, name, title, assignee, team, form, input, created_at, ended_at)
    values (${id}, ${execution}, ${nid}, ${attempt}, 'approve', ${title}, ${assignee}, ${team},
            ${JSON.stringify(form)}::json, ${JSON.stringify(input)}::json, ${at}, ${ended ? at : null}::timestamptz)`);
  return id;
}
