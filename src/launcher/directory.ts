/** What a tenant may know of the installation around it: workers, its scheduler, how long gateways have been serving. */
import type { Directory, SchedulerStatus } from '../contract/engine.ts';
import { leaseTimes } from '../contract/lease-times.ts';
import type { Db } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { nextTriggers, seenSchedulers, seenWorkers, servingSince } from './control-queries.ts';

export function makeDirectory(
  control: Db,
  tenantId: string,
  time: Time,
  leaseMs: number,
  onStatus: (status: SchedulerStatus) => void = () => {},
): Directory {
  const { gatewayLifeMs } = leaseTimes(leaseMs);
  return {
    workers: (since) => seenWorkers(control, since),
    schedulers: (since) => seenSchedulers(control, tenantId, since),
    nextTriggers: () => nextTriggers(control, tenantId),
    noteScheduler: onStatus,
    servingSince: () => servingSince(control, new Date(time.now() - gatewayLifeMs)),
  };
}
