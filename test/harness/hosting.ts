/** Hosts in this process for two real tenants, under a launcher that the test plays. */
import { engine, engineVersion } from '../../src/engine/engine.ts';
import type { SchedulerStatus } from '../../src/contract/context.ts';
import type { Engine } from '../../src/contract/engine.ts';
import { silent } from '../../src/kernel/log.ts';
import { sql } from '../../src/kernel/sql.ts';
import { makeTelemetry, type Telemetry } from '../../src/kernel/telemetry.ts';
import { type Host, type HostOptions, makeHost } from '../../src/hosts/host.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { makeContext } from './engine-context.ts';
import { type Fleet, makeFleet } from './fleet.ts';
import { PlayedLauncher } from './played-launcher.ts';

export interface Hosting {
  readonly fleet: Fleet;
  readonly launcher: PlayedLauncher;
  /** The tenants `a` and `b`. */
  readonly tenantIds: readonly [string, string];
  readonly telemetry: Telemetry;
  readonly statuses: Map<string, SchedulerStatus>;
  startHost(more?: Partial<HostOptions>): Promise<Host>;
  /** Call this after each test. */
  stopHosts(): Promise<void>;
}

export async function makeHosting(): Promise<Hosting> {
  const fleet = await makeFleet(['a', 'b']);
  const [a = '', b = ''] = fleet.tenants.map(({ row }) => row.id);
  const running: Host[] = [];
  const telemetry = makeTelemetry(() => {});
  const statuses = new Map<string, SchedulerStatus>();
  const usual: HostOptions = {
    control: fleet.control.db,
    hub: fleet.hub,
    version: engineVersion,
    engines: { find: async () => ({ ok: true, engine }) },
    addressOf: (row) => onDatabase(fleet.control.address, row.database, row.databaseOid),
    isElsewhere: () => false,
    contextFor: (row, pool) => ({
      ...makeContext({ address: fleet.control.address, pool, time: fleet.time }),
      tenant: { id: row.id, name: row.name },
    }),
    statuses,
    telemetry,
    allowPooler: false,
    poolSize: 4,
    memoryLimit: Number.POSITIVE_INFINITY,
    heapLimit: Number.POSITIVE_INFINITY,
    stays: false,
    log: silent,
  };
  return {
    fleet,
    launcher: new PlayedLauncher(fleet.control.db, fleet.hub),
    tenantIds: [a, b],
    telemetry,
    statuses,
    async startHost(more = {}) {
      const host = makeHost({ ...usual, ...more });
      running.push(host);
      await host.start();
      return host;
    },
    async stopHosts() {
      await Promise.all(running.splice(0).map((host) => host.stop()));
      await fleet.control.db.exec(sql`update launch set ordered = false`);
      await fleet.control.db.exec(sql`delete from host`);
    },
  };
}

/** An engine whose scheduler behaves as the test defines. */
export function makeMisbehavingEngine(part: Partial<ReturnType<Engine['scheduler']>>): Pick<HostOptions, 'engines'> {
  const scheduler = (): ReturnType<Engine['scheduler']> => ({
    name: 'misbehaving',
    start: async () => {},
    stop: async () => {},
    probe: async () => {},
    ...part,
  });
  return { engines: { find: async () => ({ ok: true, engine: { ...engine, scheduler } }) } };
}
