/**
 * Prepares what a role needs before it can start: the migrated control database, and in it the default tenant with a database
 * of its own. Any number of processes may prepare at once.
 *
 * No role starts without the control database. The first start also needs the default tenant. Later, it is a tenant like any
 * other: the launcher reports its faults, and the other tenants work without it (I11).
 */
import type { ClientBase } from 'pg';
import type { Config } from '../config.ts';
import { defaultTenant } from '../contract/tenants.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { isConnectionLoss, MillraceError, sqlStateOf } from '../errors.ts';
import { append, tenantTopic } from '../events/append.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { within } from '../kernel/service.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { findTenant, registerTenant } from '../control/queries.ts';
import { ensureInstalled } from '../tenants/install.ts';
import { type Address, addressOfUrl, describe, onDatabase } from '../postgres/address.ts';
import { ensureDatabase, ensureDatabases, withClient } from '../postgres/databases.ts';
import { migrate } from '../postgres/migrate.ts';
import { ownSchemaSource } from '../postgres/schema-source.ts';
import { forgotten } from '../postgres/pool/pool.ts';
import { enginesOf } from './installation.ts';

const defaultDatabase = 'millrace_default';
/** How long to wait for another process that installs the default tenant; and for a default tenant that is known, in all. */
const patienceMs = { first: 60_000, known: 5_000 } as const;

export interface Preparing {
  readonly log: Log;
  /**
   * Called with the previous version if the default tenant is upgraded to this release, because no installed engine could serve
   * it.
   */
  readonly onUpgrade?: ((from: string) => void) | undefined;
}

export async function prepareDatabases(config: Config, control: Address, preparing: Preparing): Promise<void> {
  const { address: tenant, isKnown } = await defaultPlace(config, control);
  const engines = enginesOf(config);
  const install = (lockMs: number): Promise<string[]> =>
    ensureInstalled(tenant, engine, { engines, onUpgrade: preparing.onUpgrade, lockMs });
  if (isKnown) await Promise.all([prepareControl(control), unlessAway(tenant, install, preparing.log)]);
  else {
    await ensure([control, tenant]);
    await Promise.all([migrateControl(control), install(patienceMs.first)]);
  }
  await withClient(control, async (client) => {
    await client.query(`
      set search_path to control;
      set idle_in_transaction_session_timeout to '${forgotten.control}'`);
    await registerDefault(client, tenant.database);
  });
}

/** Only the control database, for roles that leave tenants to the launcher. */
export async function prepareControl(address: Address): Promise<void> {
  await ensure([address]);
  await migrateControl(address);
}

/** Prepares a default tenant that is registered already. If that fails or takes too long, the role starts without it. */
async function unlessAway(tenant: Address, install: (lockMs: number) => Promise<string[]>, log: Log): Promise<void> {
  const about = 'default tenant not ready; starting without it (see `millrace tenant why default`)';
  const prepare = async (): Promise<true> => {
    if (await ensureDatabase(tenant))
      log.warn({ database: describe(tenant) }, 'database of the default tenant missing; created an empty one');
    await install(patienceMs.known / 2);
    return true;
  };
  try {
    if ((await within(patienceMs.known, prepare())) === undefined) log.warn({ database: describe(tenant) }, about);
  } catch (error) {
    log.warn({ err: error, database: describe(tenant) }, about);
  }
}

interface DefaultPlace {
  readonly address: Address;
  /** A default tenant is registered. */
  readonly isKnown: boolean;
}

/** The database that it is registered with, under its current name; at the first start, the database to create. */
async function defaultPlace({ defaultDatabaseUrl }: Config, control: Address): Promise<DefaultPlace> {
  const registered = await registeredDefault(control).catch((error: unknown) => {
    // the control database does not exist yet
    if (sqlStateOf(error) === '3D000') return undefined;
    throw isConnectionLoss(error) ? unreachable(control, error) : error;
  });
  const address =
    defaultDatabaseUrl === undefined
      ? onDatabase(control, registered?.database ?? defaultDatabase, registered?.oid)
      : addressOfUrl(defaultDatabaseUrl);
  return { address, isKnown: registered !== undefined };
}

function registeredDefault(control: Address): Promise<{ database: string; oid: number | null } | undefined> {
  return withClient(control, async (client) => {
    const db = onClient(client);
    // an older schema without this column has the default tenant in the database of the first start; it is migrated next
    const { there } = await db.one<{ there: boolean }>(sql`
      select exists (select from pg_attribute
                      where attrelid = to_regclass('control.tenant') and attname = 'database_oid') as there`);
    if (!there) return undefined;
    return db.maybeOne<{ database: string; oid: number | null }>(sql`
      select coalesce(d.datname, t.database) as database, d.oid
        from control.tenant t
        left join pg_database d on d.oid = t.database_oid
       where t.name = ${defaultTenant}`);
  });
}

async function ensure(addresses: readonly [Address, ...Address[]]): Promise<void> {
  await ensureDatabases(addresses).catch((error: unknown) => {
    throw isConnectionLoss(error) ? unreachable(addresses[0], error) : error;
  });
}

function unreachable(address: Address, cause: unknown): MillraceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const detail = `the database ${describe(address)} cannot be reached (${why}); check MILLRACE_DATABASE_URL, and that the server runs`;
  return new MillraceError('database_unavailable', detail, { cause });
}

async function migrateControl(address: Address): Promise<void> {
  const source = await ownSchemaSource('control');
  await withClient(address, (client) => migrate(client, { ...source, version: engineVersion }));
}

async function registerDefault(client: ClientBase, database: string): Promise<void> {
  await onClient(client).transaction(async (tx) => {
    if (await findTenant(tx, defaultTenant)) return;
    const at = new Date();
    const id = newId();
    if (!(await registerTenant(tx, { id, name: defaultTenant, database, at }))) return;
    const body = { name: defaultTenant, database, version: engineVersion };
    await append(tx, tenantTopic, [{ type: 'tenant.created', subject: id, body }], { actor: 'installation', at });
  });
}
