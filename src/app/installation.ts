/**
 * The parts that every role with a database uses, once the database is prepared (prepare-databases.ts): the control database,
 * wake-ups, a clock disciplined to the server's, and the loader.
 */
import { defaultTenant } from '../contract/tenants.ts';
import type { Pool } from 'pg';
import type { Config } from '../config.ts';
import type { EngineContext, SchedulerStatus } from '../contract/context.ts';
import type { Broker } from '../broker/contract.ts';
import { postgresBroker } from '../broker/postgres.ts';
import { type ConductorPort, makeConductorPort } from '../conductor/port.ts';
import { engine } from '../engine/engine.ts';
import { makeSecrets, type RunSecrets } from '../gateway/access/secrets.ts';
import { persist, reconnect } from '../kernel/backoff.ts';
import type { Log } from '../kernel/log.ts';
import { warnThrottled } from '../kernel/log-throttle.ts';
import { type Service, within } from '../kernel/service.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { makeTelemetry, type Telemetry } from '../kernel/telemetry.ts';
import { type ClockStep, DisciplinedTime } from '../kernel/time.ts';
import type { TenantRow } from '../control/queries.ts';
import { makeDirectory } from '../control/directory.ts';
import { Engines, enginesFolder } from '../loader/engines/engines.ts';
import { Loader } from '../loader/loader.ts';
import { type Address, addressOfUrl, onDatabase } from '../postgres/address.ts';
import { clock } from '../postgres/clock.ts';
import { ConnectionBudget } from '../postgres/pool/connection-budget.ts';
import { retryUntilServerAnswers } from '../postgres/wait-for-server.ts';
import { openPool } from '../postgres/pool/pool.ts';
import { WakeHub } from '../postgres/wake.ts';

export interface Installation {
  readonly config: Config;
  readonly log: Log;
  readonly control: Db;
  readonly controlAddress: Address;
  readonly hub: WakeHub;
  readonly broker: Broker;
  readonly time: DisciplinedTime;
  readonly telemetry: Telemetry;
  readonly secrets: RunSecrets;
  readonly loader: Loader;
  readonly engines: Engines;
  readonly statuses: Map<string, SchedulerStatus>;
  readonly addressOf: (row: TenantRow) => Address;
  readonly contextFor: (row: TenantRow, pool: Pool) => EngineContext;
  /** How this process reaches the conductors; a conductor in this process attaches itself. */
  readonly conductors: ConductorPort;
  /** The server's `max_connections`. */
  readonly connections: number;
  readonly close: () => Promise<void>;
}

export interface InstallationOptions {
  readonly config: Config;
  readonly log: Log;
  readonly role: string;
  readonly controlAddress: Address;
  readonly secretKeys: readonly [string, ...string[]];
  readonly poolSize: number;
  /** The timeout of statements in the control database; default: none. */
  readonly queryTimeoutMs?: number;
  /** The lock timeout of statements in the control database; default: none. */
  readonly lockTimeoutMs?: number;
}

/**
 * The share of the server's connections that a process may have to all tenants together. `up` runs alone, other roles may run
 * several times.
 */
const ownShare = (role: string): number => (role === 'up' ? 1 / 2 : 1 / 4);

export async function openInstallation(options: InstallationOptions): Promise<Installation> {
  const { config, log, controlAddress } = options;
  const pool = openPool({
    address: controlAddress,
    schema: 'control',
    application: `millrace ${options.role}`,
    max: 5,
    ...(options.queryTimeoutMs === undefined ? {} : { queryTimeoutMs: options.queryTimeoutMs }),
    allowPooler: config.sessionPooler,
    onOpen: async (client) => {
      if (options.lockTimeoutMs !== undefined) await client.query(`set lock_timeout to ${options.lockTimeoutMs}`);
    },
    onError: (error) => log.debug({ err: error }, 'idle connection to the control database lost'),
  });
  const control = onPool(pool);
  const time = new DisciplinedTime(logStep(log));
  const hub = new WakeHub(controlAddress, log);
  const ticking = clock(control, time, (error) => log.debug({ err: error }, 'measuring the clock failed'));
  const elsewhere = clockElsewhere(options);
  const [connections] = await Promise.all([
    retryUntilServerAnswers(() => connectionsOf(control)),
    retryUntilServerAnswers(() => ticking.start()),
    hub.service.start(),
    elsewhere?.start(),
  ]);
  const base = assemble(options, { control, time, hub, timeElsewhere: elsewhere?.time, connections });
  return {
    ...base,
    async close() {
      await base.loader.closeAll();
      await Promise.all([ticking.stop(), hub.service.stop(), elsewhere?.stop()]);
      await pool.end().catch(() => {});
    },
  };
}

function logStep(log: Log): (step: ClockStep) => void {
  return (step) => {
    const fields = { byMs: Math.round(step.byMs), at: step.at };
    if (step.byMs < 0) log.warn(fields, 'database clock set back; nothing fires until it has caught up');
    else log.warn(fields, 'database clock set forward');
  };
}

/** The server's `max_connections`. */
async function connectionsOf(control: Db): Promise<number> {
  const { most } = await control.one<{ most: number }>(sql`
    select current_setting('max_connections')::integer as most`);
  return most;
}

/** How long the start waits for that server. It has only one tenant, which cannot work without it. */
const elsewhereMs = 2_000;

/** The clock of the default tenant's server, if that is not the server of the control database. */
function clockElsewhere({
  config,
  log,
  role,
}: InstallationOptions): (Service & { readonly time: DisciplinedTime }) | undefined {
  if (config.defaultDatabaseUrl === undefined) return undefined;
  const pool = openPool({
    address: addressOfUrl(config.defaultDatabaseUrl),
    schema: 'millrace',
    application: `millrace ${role} clock`,
    max: 1,
    allowPooler: config.sessionPooler,
    onError: (error) => log.debug({ err: error }, 'clock connection lost'),
  });
  const time = new DisciplinedTime(logStep(log));
  const ticking = clock(onPool(pool), time, (error) => log.debug({ err: error }, 'measuring the clock failed'));
  const over = new AbortController();
  let starting: Promise<void> | undefined;
  return {
    name: ticking.name,
    time,
    async start() {
      starting = persist(() => ticking.start(), { backoff: reconnect, signal: over.signal }).catch(() => {});
      await within(elsewhereMs, starting);
    },
    async stop() {
      over.abort();
      await pool.end().catch(() => {});
      await starting;
      await ticking.stop();
    },
  };
}

interface Parts {
  readonly control: Db;
  readonly time: DisciplinedTime;
  readonly hub: WakeHub;
  readonly timeElsewhere: DisciplinedTime | undefined;
  readonly connections: number;
}

function assemble(
  options: InstallationOptions,
  { control, time, hub, timeElsewhere, connections }: Parts,
): Omit<Installation, 'close'> {
  const { config, log, controlAddress } = options;
  const telemetry = makeTelemetry(warnThrottled(log, 'telemetry listener failed'));
  const secrets = makeSecrets(options.secretKeys, () => time.now());
  const broker = postgresBroker(hub);
  const statuses = new Map<string, SchedulerStatus>();
  const conductors = makeConductorPort({ hub, loader: () => loader });
  const base = {
    config,
    log,
    control,
    controlAddress,
    hub,
    broker,
    time,
    telemetry,
    secrets,
    statuses,
    conductors,
    connections,
  };
  const engines = enginesOf(config);
  const addressOf = (row: TenantRow): Address => tenantAddress(config, controlAddress, row);
  const contextFor = contextsOf({ ...base, timeElsewhere });
  const loader = new Loader({
    control,
    hub,
    engines,
    addressOf,
    contextFor,
    application: `millrace ${options.role}`,
    poolSize: options.poolSize,
    allowPooler: config.sessionPooler,
    budget: budgetOf(connections * ownShare(options.role)),
    log,
  });
  return { ...base, engines, addressOf, contextFor, loader };
}

type ContextParts = Pick<
  Installation,
  'config' | 'control' | 'broker' | 'time' | 'log' | 'telemetry' | 'secrets' | 'statuses' | 'conductors'
> &
  Pick<Parts, 'timeElsewhere'>;

/** Builds the engine context of a tenant. */
function contextsOf(parts: ContextParts): Installation['contextFor'] {
  const { config, control, broker, time, timeElsewhere, log, telemetry, secrets, statuses, conductors } = parts;
  const { publicUrl, leaseMs, retention, localTasks } = config;
  const bus = {
    maxDataBytes: config.busMaxDataBytes,
    retentionMs: config.busRetentionMs,
    maxBytes: config.busMaxBytes,
    giveUpMs: config.busGiveUpMs,
    maxConnections: config.busConnections,
    allowHttp: config.busAllowHttp,
  };
  const settings = { publicUrl, leaseMs, retention, localTasks, bus };
  return (row, pool) => ({
    tenant: { id: row.id, name: row.name },
    pool,
    hints: broker.hintsOf(row.id),
    time: row.name === defaultTenant ? (timeElsewhere ?? time) : time,
    log: log.child({ tenant: row.name }),
    telemetry,
    settings,
    directory: makeDirectory(control, row.id, time, leaseMs, (status) => statuses.set(row.id, status)),
    secrets,
    conductors,
    housekeeping: (_, work) => work(),
  });
}

/** At least 10 connections, even on a server that has few. */
export function budgetOf(most: number): ConnectionBudget {
  return new ConnectionBudget(Math.max(10, Math.floor(most)));
}

/** Whether a tenant is on another server than the control database. */
export function isElsewhere({ defaultDatabaseUrl }: Config, row: Pick<TenantRow, 'name'>): boolean {
  return row.name === defaultTenant && defaultDatabaseUrl !== undefined;
}

export function enginesOf({ home }: Config): Engines {
  return new Engines(engine, enginesFolder(home));
}

function tenantAddress(config: Config, control: Address, row: TenantRow): Address {
  const { defaultDatabaseUrl } = config;
  return isElsewhere(config, row) && defaultDatabaseUrl !== undefined
    ? addressOfUrl(defaultDatabaseUrl)
    : onDatabase(control, row.database, row.databaseOid);
}
