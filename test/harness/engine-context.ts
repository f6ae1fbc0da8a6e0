/** The context of an engine on a real database, with real wake-ups within this process and a clock moved by hand. */
import type { Pool } from 'pg';
import { postgresBroker } from '../../src/broker/postgres.ts';
import type { EngineContext, Retention, SchedulerStatus } from '../../src/contract/context.ts';
import { makeSecrets } from '../../src/gateway/access/secrets.ts';
import { newId } from '../../src/kernel/id.ts';
import { silent } from '../../src/kernel/log.ts';
import { makeTelemetry } from '../../src/kernel/telemetry.ts';
import type { Time } from '../../src/kernel/time.ts';
import type { Address } from '../../src/postgres/address.ts';
import { WakeHub } from '../../src/postgres/wake.ts';

export interface TestContext extends EngineContext {
  readonly hub: WakeHub;
  /** Errors and warnings logged in the background, newest last. */
  readonly faults: unknown[];
  /** Status reports of schedulers, newest last. */
  readonly statuses: SchedulerStatus[];
}

export interface ContextOptions {
  readonly address: Address;
  readonly pool: Pool;
  readonly time: Time;
  readonly servingSince?: () => Promise<Date | undefined>;
  readonly retention?: Retention;
}

/** Keeps everything: the test's clock jumps, and nothing may expire unless the test asks for it. */
export const everything: Retention = { ageMs: null, runs: null, events: null };

export function makeContext({
  address,
  pool,
  time,
  servingSince,
  retention = everything,
}: ContextOptions): TestContext {
  const hub = new WakeHub(address, silent);
  const tenant = { id: newId(), name: 'default' };
  const faults: unknown[] = [];
  const statuses: TestContext['statuses'] = [];
  const note = (fields: { err?: unknown }): void => void faults.push(fields.err ?? fields);
  return {
    hub,
    faults,
    statuses,
    tenant,
    pool,
    hints: postgresBroker(hub).hintsOf(tenant.id),
    time,
    log: { ...silent, warn: note, error: note, child: () => silent },
    telemetry: makeTelemetry((error) => faults.push(error)),
    settings: { publicUrl: 'http://127.0.0.1:8080', leaseMs: 30_000, retention },
    directory: {
      workers: async () => [],
      workerPage: async () => ({ workers: [], next: null }),
      worker: async () => undefined,
      schedulers: async () => [],
      nextTriggers: async () => statuses.at(-1)?.nextTriggers ?? [],
      noteScheduler: (status) => void statuses.push(status),
      servingSince: servingSince ?? (async () => new Date(0)),
    },
    secrets: makeSecrets(['a master key of the tests'], () => time.now()),
    housekeeping: (_, work) => work(),
  };
}
