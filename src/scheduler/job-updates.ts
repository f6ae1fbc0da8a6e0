/**
 * The update processor: follows the events of jobs, sends changed jobs to the trigger processor, and wakes the token
 * processor. The event log is exact: every committed change is received once, however late.
 */
import { checkpoint } from './checkpoints.ts';
import type { Service } from '../kernel/service.ts';
import { newestPosition, readEvents } from '../events/queries.ts';
import { topics } from '../events/append.ts';
import type { Scheduling, Wait } from './scheduling.ts';

const sweepEveryMs = 2_000;
const page = 1_000;

export function updateProcessor(scheduling: Scheduling): Service {
  const { ctx, db, work } = scheduling;
  const follower = new UpdateFollower(scheduling);
  const following = scheduling.processor('updates', 'reading updates', (signal) => follower.pass(signal));
  const unsubscribe: (() => void)[] = [];
  return {
    name: 'updates',
    // starts before the trigger processor loads: later changes are read from here, earlier ones are in its load
    async start() {
      follower.position = await newestPosition(db);
      unsubscribe.push(
        ctx.hints.on('triggers', () => work.updates.ring()),
        ctx.hints.on('tokens', () => work.tokens.ring()),
        ctx.hints.on('retries', () => work.retries.ring()),
        ctx.hints.on('outbox', () => work.outbox.ring()),
      );
      await following.start();
    },
    quiet: () => following.quiet?.(),
    async stop() {
      for (const undo of unsubscribe.splice(0)) undo();
      await following.stop();
    },
  };
}

class UpdateFollower {
  readonly #scheduling: Scheduling;
  /** Events up to this one have been read. */
  position = 0;

  constructor(scheduling: Scheduling) {
    this.#scheduling = scheduling;
  }

  async pass(signal: AbortSignal): Promise<Wait | undefined> {
    const { db, work, changedJobs, sweepMs } = this.#scheduling;
    const newest = await newestPosition(db);
    const look = { after: this.position, topicId: topics.millrace_jobs, limit: page };
    const events = newest > this.position ? await readEvents(db, look) : [];
    if (events.length > 0) checkpoint('updates.read');
    for (const event of events) {
      if (event.subject !== null) await changedJobs.send(event.subject, signal);
      if (signal.aborted) return undefined;
      this.position = event.seq;
    }
    if (events.length > 0) this.#wakeOthers();
    if (events.length === page) return undefined;
    // skips events of other topics, so that the next read need not span them
    this.position = Math.max(this.position, newest);
    return () => work.updates.wait(sweepMs(sweepEveryMs), signal);
  }

  #wakeOthers(): void {
    const { noteActivity, work } = this.#scheduling;
    noteActivity();
    work.tokens.ring();
    // catch-up and backfills of an unpaused job continue, and new ones begin
    work.catchup.ring();
    work.backfills.ring();
  }
}
