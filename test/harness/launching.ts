/** A control database with launchers, played hosts, and tenants whose databases hold just enough to be inspected. */
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { test } from 'vitest';
import { everyone } from '../../src/contract/channels.ts';
import { newId } from '../../src/kernel/id.ts';
import { silent } from '../../src/kernel/log.ts';
import type { Service } from '../../src/kernel/service.ts';
import { splitInto } from '../../src/kernel/split-into.ts';
import { sql } from '../../src/kernel/sql.ts';
import { type LauncherOptions, makeLauncher } from '../../src/launcher/launcher.ts';
import { announce, awaitOutcome, type MessageKind, sendMessage, type SentMessage } from '../../src/control/messages.ts';
import { type Address, clientConfig, onDatabase } from '../../src/postgres/address.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import { type ControlDatabase, makeControlDatabase } from './fresh-database.ts';
import { PlayedHost } from './played-host.ts';
import { administer } from './postgres-server.ts';
import { until } from './until.ts';

export const engineOne = '1.0.0';

export interface StagedTenant {
  readonly id: string;
  readonly name: string;
  readonly address: Address;
}

type LaunchView = {
  state: string;
  code: string | null;
  reason: string | null;
  host_id: string | null;
  order_no: number;
  ordered: boolean;
  ending: boolean;
  failures: number;
  suspicion: number;
  retry_at: Date | null;
  version: string | null;
};

export interface Stage {
  readonly control: ControlDatabase;
  readonly hub: WakeHub;
  /** Versions for which hosts were requested, and processes to be killed. */
  readonly spawned: string[];
  readonly killed: number[];
  /** How host processes have ended, by process id. */
  readonly fates: Map<number, string>;
  launch(more?: Partial<LauncherOptions>): Promise<Service>;
  host(engine?: string): Promise<PlayedHost>;
  tenant(name: string, options?: { installed?: string | null; desired?: 'on' | 'off' }): Promise<StagedTenant>;
  /** Sends a message as `tenants/` does: the desired state and the message in one commit. */
  send(tenant: StagedTenant, kind: MessageKind, transaction?: { xid: string; pid: number }): Promise<number>;
  outcome(id: number): Promise<SentMessage>;
  view(tenant: StagedTenant): Promise<LaunchView | undefined>;
  /** Waits until the tenant has this state, and this code if one is given. */
  becomes(tenant: StagedTenant, state: string, code?: string | null): Promise<LaunchView>;
  limit(maxBackgroundWorkers: number): Promise<void>;
  /** Waits for this number of whole turns of the active launcher, to show that it leaves something as it is. */
  turns(count: number): Promise<void>;
  close(): Promise<void>;
}

/** A test with a stage of its own, so that tests can run at the same time. */
export const stageTest = test.extend<{ stage: Stage }>({
  // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of fixtures from the pattern
  stage: async ({}, use) => {
    const stage = await makeStage();
    await use(stage);
    await stage.close();
  },
});

/** Opens a session that stays open until it is ended. */
export async function session(address: Address): Promise<Client> {
  const client = new Client(clientConfig(address, 'psql'));
  client.on('error', () => {});
  await client.connect();
  return client;
}

export async function installBareTenant(address: Address, version: string): Promise<void> {
  const client = await session(address);
  await client.query(`create schema millrace; create table millrace.installation (version text not null)`);
  await client.query('insert into millrace.installation values ($1)', [version]);
  await client.end();
}

export async function makeStage(control?: ControlDatabase): Promise<Stage> {
  return stageOn(control ?? (await makeControlDatabase()));
}

async function stageOn(control: ControlDatabase): Promise<Stage> {
  const { db } = control;
  const hub = new WakeHub(control.address, silent);
  await hub.service.start();
  const services: Service[] = [];
  const hosts: PlayedHost[] = [];
  const databases: string[] = [];
  const spawned: string[] = [];
  const killed: number[] = [];
  const fates = new Map<number, string>();
  const stage: Stage = {
    control,
    hub,
    spawned,
    killed,
    fates,
    async launch(more = {}) {
      const launcher = makeLauncher({
        controlAddress: control.address,
        allowPooler: false,
        hub,
        engines: {
          usable: async (version) => (version === engineOne ? { ok: true } : { ok: false, detail: `no ${version}` }),
          diagnose: async () => undefined,
        },
        hosts: {
          spawn(version) {
            spawned.push(version);
            return undefined;
          },
          kill: ({ pid }) => killed.push(pid),
          fate: ({ pid }) => fates.get(pid),
        },
        discover: 'registered',
        addressOf: (row) => onDatabase(control.address, row.database, row.databaseOid),
        isElsewhere: () => false,
        maxBackgroundWorkers: 64,
        embedded: false,
        version: engineOne,
        mostHosts: 64,
        keepsSpares: false,
        log: silent,
        ...more,
      });
      services.push(launcher);
      await launcher.start();
      return launcher;
    },
    async host(engine = engineOne) {
      const host = new PlayedHost(db, hub, engine);
      hosts.push(host);
      await host.start();
      return host;
    },
    async tenant(name, { installed = engineOne, desired = 'on' } = {}) {
      const database = `launch_${randomBytes(6).toString('hex')}`;
      databases.push(database);
      await administer(onDatabase(control.address, 'postgres'), `create database ${database}`);
      const address = onDatabase(control.address, database);
      if (installed !== null) await installBareTenant(address, installed);
      const id = newId();
      await db.exec(sql`
        insert into tenant (id, name, database, desired, created_at)
        values (${id}, ${name}, ${database}, ${desired}, now())`);
      return { id, name, address };
    },
    async send(tenant, kind, transaction) {
      const id = await db.transaction(async (tx) => {
        if (transaction === undefined)
          await tx.exec(sql`update tenant set desired = ${kind === 'stop' ? 'off' : 'on'} where id = ${tenant.id}`);
        const rest = { sender: 'a test', cause: 'a test', at: new Date() };
        return sendMessage(tx, { kind, tenant, ...rest, ...(transaction && { transaction }) });
      });
      announce(hub);
      return id;
    },
    outcome: (id) => awaitOutcome(db, id, { until: 'settled', forMs: 10_000 }),
    view: (tenant) =>
      db.maybeOne<LaunchView>(sql`
        select state, code, reason, host_id, order_no, ordered, ending, failures, suspicion, retry_at, version
          from launch where tenant_id = ${tenant.id}`),
    becomes: (tenant, state, code) =>
      until(`${tenant.name} is ${state} ${code ?? ''}`, async () => {
        const view = await stage.view(tenant);
        return view?.state === state && (code === undefined || view.code === code) ? view : undefined;
      }),
    async limit(maxBackgroundWorkers) {
      await db.exec(sql`
        insert into setting (name, value, changed_at, changed_by)
        values ('max_background_workers', ${String(maxBackgroundWorkers)}, now(), 'a test')
        on conflict (name) do update set value = excluded.value`);
      hub.send('host_reports', everyone);
    },
    async turns(count) {
      const nobody = { id: newId(), name: 'nobody', address: control.address };
      // each is settled in a turn of its own; the first of these turns may have begun before
      for (let i = 0; i <= count; i++) await stage.outcome(await stage.send(nobody, 'start'));
    },
    async close() {
      await Promise.all(services.map((service) => service.stop()));
      await Promise.all(hosts.map((host) => host.freeze()));
      await hub.service.stop();
      const drop = (database: string): Promise<void> =>
        administer(onDatabase(control.address, 'postgres'), `drop database if exists ${database} with (force)`);
      for (const some of splitInto(10, databases)) await Promise.all(some.map(drop));
      await control.close();
    },
  };
  return stage;
}
