/**
 * A host: runs the schedulers of the tenants whose desired state is on. Registers itself in the control database and
 * says every second that it lives, and so do its schedulers.
 */
import { hostname } from 'node:os';
import type { SchedulerStatus } from '../contract/engine.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { all, every, type Service } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import type { Time } from '../kernel/time.ts';
import type { Address } from '../postgres/address.ts';
import {
  beatHost,
  beatSchedulers,
  noteState,
  pruneHosts,
  registerHost,
  removeHost,
  type TenantRow,
} from './control-queries.ts';
import type { Loader } from './loader.ts';
import { Tallies } from './tallies.ts';
import { tenantScheduler } from './tenant-scheduler.ts';

export interface HostOptions {
  readonly control: Db;
  readonly loader: Loader;
  readonly addressOf: (row: TenantRow) => Address;
  readonly statuses: ReadonlyMap<string, SchedulerStatus>;
  readonly time: Time;
  readonly telemetry: Telemetry;
  readonly version: string;
  readonly allowPooler: boolean;
  readonly log: Log;
}

const beatEveryMs = 1_000;
const lookEveryMs = 2_000;
const forgottenMs = 3_600_000;

interface Running {
  readonly id: string;
  readonly service: Service;
}

export function makeHost(options: HostOptions): Service {
  const id = newId();
  const running = new Map<string, Running>();
  const tallies = new Tallies(options.telemetry);
  const onError = (doing: string) => (error: unknown) =>
    options.log.warn({ err: error, doing }, 'the host could not do its part; trying again');
  const beats = every(beatEveryMs, 'host beat', () => beat(options, id, running, tallies), onError('beating'));
  const looks = every(lookEveryMs, 'host look', () => reconcile(options, id, running), onError('looking at tenants'));
  const stopAll = async (): Promise<void> => {
    await Promise.all([...running.values()].map(({ service }) => service.stop()));
    running.clear();
  };
  return all('host', [
    {
      name: 'host registration',
      start: () => register(options, id),
      stop: async () => removeHost(options.control, id).catch(() => {}),
    },
    { name: 'schedulers', start: async () => {}, stop: stopAll },
    looks,
    beats,
  ]);
}

async function register({ control, time, version }: HostOptions, id: string): Promise<void> {
  const at = new Date(time.now());
  await registerHost(control, { id, machine: hostname(), pid: process.pid, engine: version, at });
  await pruneHosts(control, new Date(at.getTime() - forgottenMs));
}

async function beat(
  { control, time, statuses, version }: HostOptions,
  id: string,
  running: ReadonlyMap<string, Running>,
  tallies: Tallies,
): Promise<void> {
  const at = new Date(time.now());
  if (!(await beatHost(control, id, at)))
    await registerHost(control, { id, machine: hostname(), pid: process.pid, engine: version, at });
  const nothing: SchedulerStatus = { queuedTriggers: 0, nextTriggerId: null, nextTriggers: [], ready: false };
  const alive = [...running].map(([tenantId, { id: schedulerId }]) => ({
    tenantId,
    id: schedulerId,
    ...(statuses.get(tenantId) ?? nothing),
    tally: tallies.of(tenantId),
  }));
  if (alive.length > 0) await beatSchedulers(control, id, alive, at);
}

/** Starts what should run and does not, stops what should not. */
async function reconcile(options: HostOptions, hostId: string, running: Map<string, Running>): Promise<void> {
  options.loader.forgetList();
  const wanted = new Map(
    (await options.loader.tenants()).filter((row) => row.desired === 'on').map((row) => [row.id, row]),
  );
  for (const [tenantId, { service }] of running) {
    if (wanted.has(tenantId)) continue;
    running.delete(tenantId);
    await service.stop();
  }
  for (const row of wanted.values()) {
    if (!running.has(row.id)) await startScheduler(options, hostId, running, row);
  }
}

async function startScheduler(
  options: HostOptions,
  hostId: string,
  running: Map<string, Running>,
  row: TenantRow,
): Promise<void> {
  const { control, time, loader, allowPooler, log } = options;
  const id = newId();
  const service = tenantScheduler({
    row,
    loader,
    address: options.addressOf(row),
    allowPooler,
    log: log.child({ tenant: row.name }),
    note: async (state) => {
      await noteState(control, { tenantId: row.id, id, hostId, at: new Date(time.now()), ...state });
    },
  });
  running.set(row.id, { id, service });
  await service.start();
}
