/**
 * A tenant's API in this process, on a real database. Requests go through the router, with any caller that a test chooses.
 * Wake-ups and broker are real, and sent hints are recorded. The clock is moved by hand, and the test fills the directory
 * with workers and schedulers.
 */
import type { ApiContext } from '../../src/api/context.ts';
import { postgresBroker } from '../../src/broker/postgres.ts';
import type { Hints } from '../../src/contract/channels.ts';
import type { SchedulerInfo, WorkerInfo } from '../../src/contract/context.ts';
import type { LocalTasks } from '../../src/contract/local-tasks.ts';
import { makeSecrets } from '../../src/gateway/access/secrets.ts';
import { silent } from '../../src/kernel/log.ts';
import { makeTelemetry } from '../../src/kernel/telemetry.ts';
import { systemTime } from '../../src/kernel/time.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import { everything } from './engine-context.ts';
import { makeTenantDatabase, type TenantDatabase } from './tenant-database.ts';
import { makeTenantCalls, type TenantCalls, tenantId } from './tenant-router.ts';

export { keyOf, taskOf } from './tenant-router.ts';

export interface TenantApi extends TenantDatabase, TenantCalls {
  readonly ctx: ApiContext;
  /** Hints sent since the last `heard.splice(0)`: `events`, `triggers ["…"]`… */
  readonly heard: string[];
  /** Moves the clock ahead by this many milliseconds. */
  advance(ms: number): void;
  readonly workers: WorkerInfo[];
  readonly schedulers: SchedulerInfo[];
  /** The triggers that the scheduler reports as firing next. */
  readonly nextTriggers: string[];
}

interface TenantOptions {
  readonly name?: string;
  readonly localTasks?: LocalTasks;
}

function recordHints(heard: string[], hub: WakeHub): Hints {
  const real = postgresBroker(hub).hintsOf(tenantId);
  return {
    on: (kind, listener) => real.on(kind, listener),
    send: (kind, payload) => {
      heard.push(payload === undefined ? kind : `${kind} ${JSON.stringify(payload)}`);
      real.send(kind, payload);
    },
  };
}

/** `name`: name of the tenant; `localTasks`: the tenants that may run processes. */
export async function makeTenantApi({ name = 'default', localTasks }: TenantOptions = {}): Promise<TenantApi> {
  const database = await makeTenantDatabase();
  const hub = new WakeHub(database.address, silent);
  await hub.service.start();
  const heard: string[] = [];
  const workers: WorkerInfo[] = [];
  const schedulers: SchedulerInfo[] = [];
  const nextTriggers: string[] = [];
  let ahead = 0;
  const now = (): number => Date.now() + ahead;
  const ctx: ApiContext = {
    hints: recordHints(heard, hub),
    tenant: { id: tenantId, name },
    pool: database.pool,
    db: database.db,
    time: { ...systemTime, now },
    log: silent,
    telemetry: makeTelemetry(() => {}),
    settings: {
      publicUrl: 'http://127.0.0.1:8080',
      leaseMs: 30_000,
      retention: everything,
      ...(localTasks === undefined ? {} : { localTasks }),
    },
    directory: {
      workers: async (since) => workers.filter((worker) => worker.lastSeenAt > since),
      workerPage: async ({ since }) => ({
        workers: workers.filter(({ lastSeenAt }) => lastSeenAt > since),
        next: null,
      }),
      worker: async (id) => workers.find((worker) => worker.id === id),
      schedulers: async (since) => schedulers.filter((scheduler) => scheduler.lastSeenAt > since),
      nextTriggers: async () => nextTriggers,
      noteScheduler: () => {},
      servingSince: async () => new Date(0),
    },
    secrets: makeSecrets(['a master key of the tests'], now),
    housekeeping: (_, work) => work(),
  };
  const calls = makeTenantCalls(ctx);
  return {
    ...database,
    ctx,
    ...calls,
    heard,
    advance: (ms) => {
      ahead += ms;
    },
    workers,
    schedulers,
    nextTriggers,
    async close() {
      await hub.service.stop();
      await database.close();
    },
  };
}
