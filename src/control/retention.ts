/**
 * Retention of the control database. Once an hour it deletes old events and messages, and workers and gateways that are long
 * gone; once a minute, workers that never sent a heartbeat. Any number of processes may run it.
 */
import type { Retention } from '../contract/context.ts';
import { pruneEvents } from '../events/prune.ts';
import { dayMs } from '../kernel/text/duration.ts';
import type { Log } from '../kernel/log.ts';
import { all, every, type Service } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { forgetClaimants, forgetFormerNames, forgetGateways, forgetWorkers } from './queries.ts';
import { forgetConductors } from './conductor-queries.ts';
import { forgetCouriers } from './courier-queries.ts';
import { forgetMessages } from './messages.ts';

const everyMs = 3_600_000;
const batch = 1_000;
const messageDays = 30;
const claimantsEveryMs = 60_000;
/** A worker sends a heartbeat every few seconds, from its start on. */
const claimantAgeMs = 5 * 60_000;

export interface ControlRetention {
  readonly control: Db;
  readonly time: Time;
  readonly retention: Retention;
  readonly log: Log;
}

export function controlRetention(options: ControlRetention): Service {
  const { control, time, log } = options;
  const onError = (error: unknown): void =>
    log.warn({ err: error }, 'removing old rows of the control database failed, retrying');
  const forget = async (): Promise<void> => {
    await forgetClaimants(control, new Date(time.now() - claimantAgeMs));
  };
  return all('retention of the control database', [
    pruneHourly(options, onError),
    every(claimantsEveryMs, 'retention of workers without a heartbeat', forget, onError),
  ]);
}

function pruneHourly({ control, time, retention }: ControlRetention, onError: (error: unknown) => void): Service {
  const { ageMs, events } = retention;
  return every(
    everyMs,
    'hourly retention of the control database',
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
      await forgetCouriers(control, new Date(time.now() - everyMs));
      await forgetConductors(control, new Date(time.now() - everyMs));
      await forgetFormerNames(control);
    },
    onError,
  );
}
