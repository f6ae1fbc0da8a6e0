/**
 * Retention of the control database: deletes old events and messages, and workers and gateways that are long gone, once an
 * hour. Any number of processes may run it.
 */
import type { Retention } from '../contract/context.ts';
import { pruneEvents } from '../events/prune.ts';
import { dayMs } from '../kernel/text/duration.ts';
import type { Log } from '../kernel/log.ts';
import { every, type Service } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { forgetFormerNames, forgetGateways, forgetWorkers } from './queries.ts';
import { forgetMessages } from './messages.ts';

const everyMs = 3_600_000;
const batch = 1_000;
const messageDays = 30;

export interface ControlRetention {
  readonly control: Db;
  readonly time: Time;
  readonly retention: Retention;
  readonly log: Log;
}

export function controlRetention({ control, time, retention, log }: ControlRetention): Service {
  const { ageMs, events } = retention;
  return every(
    everyMs,
    'retention of the control database',
    async (signal) => {
      for (let more = true; more && !signal.aborted; ) {
        const now = new Date(time.now());
        const before = ageMs === null ? undefined : new Date(now.getTime() - ageMs);
        const pruned = await pruneEvents(control, { before, most: events ?? undefined, now });
        more = pruned.more && pruned.events > 0;
      }
      // every start of `millrace worker` makes a new worker; after a day without a beat it is no longer shown anywhere
      for (let gone = batch; gone >= batch && !signal.aborted; ) {
        gone = await forgetWorkers(control, new Date(time.now() - dayMs), batch);
      }
      for (let gone = batch; gone >= batch && !signal.aborted; ) {
        gone = await forgetMessages(control, new Date(time.now() - messageDays * dayMs), batch);
      }
      await forgetGateways(control, new Date(time.now() - everyMs));
      await forgetFormerNames(control);
    },
    (error) => log.warn({ err: error }, 'retention of the control database failed, retrying'),
  );
}
