/**
 * Everything that tenant life needs in tests: a control database, engines of several versions, and a played launcher. The
 * launcher settles one message of each tenant at a time, after its transaction has ended.
 */
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import type { Engine } from '../../src/contract/engine.ts';
import { engine, engineVersion } from '../../src/engine/engine.ts';
import { silent } from '../../src/kernel/log.ts';
import { every, type Service } from '../../src/kernel/service.ts';
import { type Db, onClient, sql } from '../../src/kernel/sql.ts';
import { systemTime } from '../../src/kernel/time.ts';
import type { Life } from '../../src/tenants/life.ts';
import { type Address, clientConfig, onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { locks } from '../../src/postgres/locks.ts';
import { type Migration, migrateWithin, pendingMigrations } from '../../src/postgres/migrate.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import { type ControlDatabase, makeControlDatabase } from './fresh-database.ts';
import { administer, serverAddress } from './postgres-server.ts';
import { until } from './until.ts';

export interface TestLife extends Life {
  readonly database: ControlDatabase;
  /** A unique name for a tenant and its database, which is dropped in the end. */
  name(): string;
  readonly launcher: Service;
  close(): Promise<void>;
}

export const baseSchema = await ownSchemaSource('tenant');
export const baseMigrations: readonly Migration[] = baseSchema.migrations;

/** An engine of another version with additional migrations. */
export function engineOf(
  version: string,
  more: readonly string[] = [],
): Engine & { readonly all: readonly Migration[] } {
  const extra = more.map((text, i) => {
    const number = baseMigrations.length + i + 1;
    return { number, name: `${String(number).padStart(4, '0')}_more.sql`, text, checksum: checksum(version, i) };
  });
  const all = [...baseMigrations, ...extra];
  return {
    ...engine,
    version,
    all,
    pending: (client) => pendingMigrations(client, { ...baseSchema, migrations: all, version }),
    migrate: (client) => migrateWithin(client, onClient(client), { ...baseSchema, migrations: all, version }),
  };
}

function checksum(version: string, i: number): string {
  return Buffer.from(`${version}/${i}`).toString('hex').padEnd(64, '0').slice(0, 64);
}

export async function makeTestLife(
  engines: readonly (Engine & { readonly all?: readonly Migration[] })[] = [engine],
  more: Partial<Life> = {},
): Promise<TestLife> {
  const database = await makeControlDatabase();
  const hub = new WakeHub(database.address, silent);
  await hub.service.start();
  const names: string[] = [];
  const have = engines.map(({ version }) => version).join(', ');
  const launcher = playedLauncher(database.db);
  await launcher.start();
  await until('the launcher holds the lease', () =>
    database.db.maybeOne(sql`select from launcher_lease where holder is not null`),
  );
  return {
    control: database.db,
    controlAddress: database.address,
    hub,
    time: systemTime,
    version: engineVersion,
    engines: {
      listTried: async () =>
        engines.map(({ version, contract }) => ({
          version,
          contract,
          fault: null,
          running: version === engineVersion,
          loads: true,
        })),
      find: async (version) => {
        const found = engines.find((each) => each.version === version);
        return found
          ? { ok: true, engine: found }
          : { ok: false, detail: `engine ${version} is not here, only ${have}` };
      },
      list: async () =>
        engines.map(({ version, contract }) => ({
          version,
          contract,
          fault: null,
          running: version === engineVersion,
        })),
    },
    schemaOf: async (version) => {
      const migrations = engines.find((each) => each.version === version)?.all ?? baseMigrations;
      return { ...baseSchema, migrations };
    },
    addressOf: (row) => onDatabase(database.address, row.database, row.databaseOid),
    isElsewhere: () => false,
    discovers: false,
    slotLimit: 64,
    databaseFault: () => undefined,
    ...more,
    database,
    launcher,
    name() {
      const name = `life_${randomBytes(5).toString('hex')}`;
      names.push(name);
      return name;
    },
    async close() {
      await launcher.stop();
      await hub.service.stop();
      await database.close();
      for (const name of names) await administer(serverAddress(), `drop database if exists ${name} with (force)`);
    },
  };
}

/** Settles one message of each tenant at a time, once its transaction has ended. */
function playedLauncher(db: Db): Service {
  return every(
    10,
    'played launcher',
    async () => {
      await db.exec(sql`
        update launcher_lease set holder = '00000000-0000-7000-8000-000000000000', renewed_at = clock_timestamp()`);
      await db.exec(sql`
        update message
           set acknowledged_at = coalesce(acknowledged_at, clock_timestamp()),
               outcome = case
                 when pg_xact_status(xid) = 'in progress' then 'waiting_for_transaction'
                 when kind = 'stop' then 'stopped'
                 else 'started'
               end,
               settled_at = case when pg_xact_status(xid) = 'in progress' then null else clock_timestamp() end
         where id in (select min(id) from message where settled_at is null group by tenant_id)`);
    },
    () => {},
  );
}

export interface Holder {
  readonly ended: Promise<void>;
  isAlive(): boolean;
  close(): Promise<void>;
}

/** A connection that holds `drain` as an engine's does. With a hub it closes at the hint, as ours do; without, it stays. */
export async function holdDrain(address: Address, hub?: WakeHub): Promise<Holder> {
  const client = new Client(clientConfig(address, 'a test that holds drain'));
  client.on('error', () => {});
  await client.connect();
  await client.query(`select pg_advisory_lock_shared(${locks.drain.join()})`);
  let alive = true;
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve())).then(() => {
    alive = false;
  });
  const close = async (): Promise<void> => {
    stop?.();
    await client.end().catch(() => {});
  };
  const stop = hub?.onAny('tenant', () => void close());
  return { ended, isAlive: () => alive, close };
}

/** Address of a tenant whose database has the tenant's name. */
export function addressIn(life: Life, name: string): Address {
  return onDatabase(life.controlAddress, name);
}

export function inDatabase<T>(life: Life, name: string, work: (db: Db, client: Client) => Promise<T>): Promise<T> {
  return withClient(addressIn(life, name), (client) => work(onClient(client), client));
}

export interface StoredMessage {
  readonly kind: string;
  readonly cause: string;
  readonly waits: boolean;
}

/** Messages about a tenant, oldest first. */
export function messagesAbout(life: Life, name: string): Promise<StoredMessage[]> {
  return life.control.rows(sql`
    select kind, cause, xid is not null as waits from message where tenant = ${name} order by id`);
}

/** Types of the events whose body names the tenant, oldest first. */
export async function eventsOf(life: Life, name: string): Promise<string[]> {
  const rows = await life.control.rows<{ type: string }>(sql`
    select type from event where topic_id = 1 and body::jsonb ->> 'name' = ${name} order by seq`);
  return rows.map(({ type }) => type);
}
