/**
 * Looks whether a tenant has work for conductors: messages in the inbox, and when the next timer is due. It is part of the scheduler's
 * status, so that conductors need not open all tenants to find out. A conductor that drives a tenant's executions does not need it.
 *
 * A tenant is looked at every second while it has such work, otherwise every five seconds, and when a hint comes.
 */
import type { SchedulerStatus } from '../contract/context.ts';
import type { Service } from '../kernel/service.ts';
import { readFlowsOutlook } from './queries.ts';
import type { Scheduling } from './scheduling.ts';

type Outlook = NonNullable<SchedulerStatus['flows']>;

const busyMs = 1_000;
const idleMs = 5_000;
/** Work is expected within this time. */
const soonMs = 60_000;

export interface FlowsOutlook extends Service {
  /** What it saw last. */
  readonly seen: () => Outlook;
}

export function flowsOutlook({ ctx, db, time, work, processor }: Scheduling): FlowsOutlook {
  let seen: Outlook = { inbox: false, nextDueAt: null };
  const looking = processor('flows', 'looking for work of flows', async (signal) => {
    seen = await readFlowsOutlook(db, new Date(time.now()));
    const isBusy = seen.inbox || (seen.nextDueAt !== null && seen.nextDueAt.getTime() < time.now() + soonMs);
    return () => work.flows.wait(isBusy ? busyMs : idleMs, signal);
  });
  let unlisten = (): void => {};
  return {
    ...looking,
    async start() {
      unlisten = ctx.hints.on('flows', () => work.flows.ring());
      await looking.start();
    },
    async stop(deadlineMs) {
      unlisten();
      await looking.stop(deadlineMs);
    },
    seen: () => seen,
  };
}
