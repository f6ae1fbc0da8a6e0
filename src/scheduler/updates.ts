/**
 * The update processor: follows the event log's account of jobs and tells the trigger processor which to read anew and
 * the token processor to look. The log is exact: a change that was committed is heard, however late, and none twice.
 */
import { checkpoint } from './checkpoints.ts';
import type { Service } from '../kernel/service.ts';
import { newestPosition, readEvents } from '../events/queries.ts';
import { topics } from '../events/append.ts';
import type { Scheduling } from './scheduling.ts';

const sweepEveryMs = 2_000;
const page = 1_000;

export function updateProcessor(scheduling: Scheduling): Service {
  const { ctx, db, work, changedJobs, sweepMs, stir, processor } = scheduling;
  let position = 0;
  const unsubscribe: (() => void)[] = [];
  const following = processor('updates', 'reading updates', async (signal) => {
    const newest = await newestPosition(db);
    const look = { after: position, topicId: topics.millrace_jobs, limit: page };
    const events = newest > position ? await readEvents(db, look) : [];
    if (events.length > 0) checkpoint('updates.read');
    for (const event of events) {
      if (event.subject !== null) await changedJobs.send(event.subject, signal);
      if (signal.aborted) return undefined;
      position = event.seq;
    }
    if (events.length > 0) {
      stir();
      work.tokens.ring();
      // an unpaused job's catch-up and backfills go on, and new ones begin
      work.catchup.ring();
      work.backfills.ring();
    }
    if (events.length === page) return undefined;
    // past what other topics wrote: the next look need not span it
    position = Math.max(position, newest);
    return () => work.updates.wait(sweepMs(sweepEveryMs), signal);
  });
  return {
    name: 'updates',
    // before the trigger processor loads: what changes after this position is heard, what changed before it is loaded
    async start() {
      position = await newestPosition(db);
      unsubscribe.push(ctx.hints.on('triggers', () => work.updates.ring()));
      unsubscribe.push(ctx.hints.on('tokens', () => work.tokens.ring()));
      unsubscribe.push(ctx.hints.on('retries', () => work.retries.ring()));
      await following.start();
    },
    async stop() {
      for (const undo of unsubscribe.splice(0)) undo();
      await following.stop();
    },
  };
}
