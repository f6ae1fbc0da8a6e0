/**
 * Copies events that `millrace.publish()` was given to the bus log, as soon as their transaction has committed. The host passes the
 * notification on; a sweep finds what was published while no scheduler ran, or under the host of an older release.
 */
import { copyOutbox } from '../bus/relay/outbox.ts';
import type { Service } from '../kernel/service.ts';
import type { Scheduling } from './scheduling.ts';

const sweepMs = 5_000;

export function outboxProcessor({ ctx, db, work, processor }: Scheduling): Service {
  return processor('outbox', 'copying published events', async (signal) =>
    (await copyOutbox(ctx, db)) ? undefined : () => work.outbox.wait(sweepMs, signal),
  );
}
