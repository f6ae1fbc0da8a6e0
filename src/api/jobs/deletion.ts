/** Deletes jobs: calls delete_jobs in the transaction, and notifies the scheduler and workers after the commit. */
import type { Recording } from '../../events/append.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { ApiContext } from '../context.ts';

export type HeldRow = { readonly id: string; readonly lease: number };

/** Returns the runs to be killed. Appends events, so nothing may be locked after it. */
function deleteJobs(db: Db, ids: readonly string[], who: { actor: string; at: Date }): Promise<HeldRow[]> {
  return db.rows<HeldRow>(sql`
    select id, lease
      from delete_jobs(${ids}::uuid[], ${who.actor}, ${who.at})`);
}

export interface DoomedJob {
  readonly id: string;
  readonly name: string;
}

/** Must be the last step of a transaction. */
export async function endJobs(
  tx: Recording,
  jobs: readonly DoomedJob[],
  who: { actor: string; at: Date },
): Promise<HeldRow[]> {
  for (const job of jobs)
    tx.record('millrace_jobs', { type: 'job.deleted', subject: job.id, body: { name: job.name } });
  return deleteJobs(
    tx,
    jobs.map((job) => job.id),
    who,
  );
}

/** Sends the wake-ups. Call it after the commit. */
export function announceDeletion(ctx: ApiContext, jobs: readonly DoomedJob[], running: readonly HeldRow[]): void {
  ctx.hints.send(
    'triggers',
    jobs.map((job) => job.id),
  );
  for (const run of running) ctx.hints.send('cancel', { tenant: ctx.tenant.id, run: run.id, lease: run.lease });
  ctx.hints.send('events');
}
