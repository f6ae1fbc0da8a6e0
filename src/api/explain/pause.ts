/** Explains who paused a job and when, if the event log still has the event. */
import type { ApiContext } from '../context.ts';
import { findJobEvent } from './queries.ts';
import { type Finding, finding, jobNameOf, type Part, formatTime } from './findings.ts';

export async function pauseOf(ctx: ApiContext, part: Part): Promise<Finding> {
  const act = await findJobEvent(ctx.db, { job: part.job_id, type: 'job.paused' });
  const since = act === undefined ? '' : ` since ${formatTime(act.at)}, by ${act.actor ?? 'someone'}`;
  return finding(
    'paused',
    `its job is paused${since}`,
    { job: part.job_id, actor: act?.actor ?? null, at: act?.at ?? null },
    `millrace unpause ${jobNameOf(part)}`,
  );
}
