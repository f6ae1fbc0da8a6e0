/** What a tenant can read of its installation: workers, its scheduler, and since when gateways have been serving. */
import type { Directory, SchedulerStatus } from '../contract/context.ts';
import { leaseTimes } from '../contract/lease-times.ts';
import type { Db } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { listConductors } from './conductor-queries.ts';
import { readCourierStanding } from './courier-queries.ts';
import {
  findWorker,
  nextTriggers,
  noteBus,
  seenSchedulers,
  seenWorkers,
  servingSince,
  workerPage,
  workersOfKey,
} from './queries.ts';

/** How long an answer that is the same for all tenants is cached, so that hundreds of tenants in a host share one query. */
const cacheMs = 1_000;
const servings = new WeakMap<Db, { readonly atMs: number; readonly since: Promise<Date | undefined> }>();

function sharedServingSince(control: Db, beatSince: Date): Promise<Date | undefined> {
  const known = servings.get(control);
  if (known !== undefined && performance.now() - known.atMs < cacheMs) return known.since;
  const since = servingSince(control, beatSince);
  servings.set(control, { atMs: performance.now(), since });
  // failures are not cached
  since.catch(() => servings.delete(control));
  return since;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const maxQueued = 2 ** 31 - 1;
const maxNextTriggers = 1_000;

/** Drops invalid values, because the status comes from an engine of any version. */
function parseStatus(status: { readonly [K in keyof SchedulerStatus]: unknown }): SchedulerStatus {
  const isId = (value: unknown): value is string => typeof value === 'string' && uuid.test(value);
  const queued = Math.trunc(Number(status.queuedTriggers));
  const next: unknown[] = Array.isArray(status.nextTriggers) ? status.nextTriggers.slice(0, maxNextTriggers) : [];
  return {
    queuedTriggers: queued > 0 ? Math.min(queued, maxQueued) : 0,
    nextTriggerId: isId(status.nextTriggerId) ? status.nextTriggerId : null,
    nextTriggers: next.filter(isId),
    ready: status.ready === true,
    ...(isObject(status.flows) && { flows: parseFlows(status.flows) }),
  };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function parseFlows(flows: object): NonNullable<SchedulerStatus['flows']> {
  const nextDueAt: unknown = Reflect.get(flows, 'nextDueAt');
  const isTime = nextDueAt instanceof Date && Number.isFinite(nextDueAt.getTime());
  return { inbox: Reflect.get(flows, 'inbox') === true, nextDueAt: isTime ? nextDueAt : null };
}

/** A count of an engine of any version. */
function parseCount(value: unknown): number {
  const count = Math.trunc(Number(value));
  return count > 0 ? Math.min(count, maxQueued) : 0;
}

export function makeDirectory(
  control: Db,
  tenantId: string,
  time: Time,
  leaseMs: number,
  onStatus: (status: SchedulerStatus) => void = () => {},
): Directory {
  const { gatewayLifeMs } = leaseTimes(leaseMs);
  return {
    workers: (since) => seenWorkers(control, tenantId, since),
    workerPage: (page) => workerPage(control, tenantId, page),
    worker: (id) => findWorker(control, tenantId, id),
    workersOfKey: (keyId) => workersOfKey(control, keyId),
    schedulers: (since) => seenSchedulers(control, tenantId, since),
    nextTriggers: () => nextTriggers(control, tenantId),
    noteScheduler: (status) => onStatus(parseStatus(status)),
    noteBus: ({ subscribers }) => noteBus(control, tenantId, parseCount(subscribers), new Date(time.now())),
    couriers: async (since) =>
      (await readCourierStanding(control)).couriers
        .filter(({ beatAt }) => beatAt >= since)
        .map(({ id, machine, version, beatAt }) => ({ id, machine, version, lastSeenAt: beatAt })),
    conductors: async () =>
      (await listConductors(control)).map(({ id, machine, version, functions, beatAt }) => ({
        id,
        machine,
        version,
        functions,
        lastSeenAt: beatAt,
      })),
    servingSince: () => sharedServingSince(control, new Date(time.now() - gatewayLifeMs)),
  };
}
