/** Retention of the control database's event log, once an hour. Any number of hosts may do it. */
import type { Retention } from '../contract/engine.ts';
import { pruneEvents } from '../events/prune.ts';
import type { Log } from '../kernel/log.ts';
import { every, type Service } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';

const everyMs = 3_600_000;

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
    },
    (error) => log.warn({ err: error }, 'old events of the control database could not be removed; trying again'),
  );
}
