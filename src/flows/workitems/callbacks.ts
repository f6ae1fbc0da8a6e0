/** Requests with a callback: who was called, and whether the step still waits for the answer. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { Attempt } from './answers.ts';

export type Callback = {
  /** The name of the flow. */
  readonly flow: string;
  /** The name of the task. */
  readonly name: string;
  /** Whether its execution has ended, or an answer is stored. */
  readonly isAnswered: boolean;
};

/** The request of this attempt; undefined: its run is no longer on record, or there was none. */
export function findCallback(db: Db, { execution, nid, attempt }: Attempt): Promise<Callback | undefined> {
  return db.maybeOne<Callback>(sql`
    select coalesce(f.name, '') as flow, coalesce(n.work ->> 'name', '') as name,
           e.status >= 3 or exists (
             select from inbox i where i.execution_id = e.id and i.id = ${`answer/${nid}/${attempt}`}) as "isAnswered"
      from node_run n
      join execution e on e.id = n.execution_id
      left join flow f on f.id = e.flow_id
     where n.execution_id = ${execution} and n.nid = ${nid} and n.attempt = ${attempt}`);
}
