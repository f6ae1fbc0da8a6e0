/**
 * Installs Millrace in a tenant's database, in one transaction. The RESTART that starts the tenant's scheduler is sent
 * before the first statement, and waits until that transaction has committed or rolled back.
 */
import type { ClientBase } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { isConnectionLoss, knownError, MillraceError, sqlStateOf } from '../errors.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { isNewer } from '../kernel/text/version.ts';
import type { Address } from '../postgres/address.ts';
import { locks } from '../postgres/locks.ts';
import type { Engines } from '../loader/engines/engines.ts';
import { look } from '../loader/inspect.ts';
import { adviseEnding, blockersOf, describeBlocker } from '../control/blockers.ts';
import { formatCause } from '../control/format-reason.ts';
import { checkpoint } from './checkpoints.ts';
import { drainedOn, type DrainHooks, inDrained, onConnection } from './drained-work.ts';
import { type Actor, announceChange, type Life, makeRestartHooks } from './life.ts';
import type { LifeRow } from './queries.ts';

/** The database was dropped or renamed after the inspection. Another one may have its name now. */
const noSuchDatabase = '3D000';

/** How long an inspection waits for a migration that is under way. */
const inspectMs = 2_000;

/** For a tenant that no process uses yet. */
const noHooks: DrainHooks = { onBegin: async () => {}, remind: () => {} };

/** Brings the schema to the engine's version. Returns the applied steps, named as in `engine.pending`. */
export function migrateTenant(address: Address, engine: Engine, hooks: Partial<DrainHooks> = {}): Promise<string[]> {
  return inDrained(address, { ...noHooks, ...hooks }, (client) => engine.migrate(client));
}

/** Returns the id of the RESTART message. */
export async function install(life: Life, row: LifeRow, engine: Engine, { actor }: Actor): Promise<number> {
  const { messageId, ...hooks } = makeRestartHooks(life, row, { cause: `install ${engine.version}`, actor });
  try {
    await migrateTenant(life.addressOf(row), engine, hooks);
  } catch (error) {
    throw migrationFailed(error, row.name);
  }
  checkpoint('tenant.installed');
  announceChange(life, row.id);
  return messageId();
}

/** The version recorded in the tenant's database; null if Millrace is not installed. Throws if it cannot be inspected. */
export async function readVersion(life: Life, row: LifeRow): Promise<{ readonly version: string | null } | 'gone'> {
  const found = await look(life.addressOf(row), inspectMs);
  if (found.kind === 'gone') return 'gone';
  if (found.kind === 'installed') return { version: found.version };
  if (found.kind === 'not_installed') return { version: null };
  const why = found.kind === 'unreachable' ? formatCause(found.reason) : await describeChange(life, row);
  throw new MillraceError(
    'tenant_unavailable',
    `the database ${row.database} of tenant ${row.name} cannot be used: ${why}`,
  );
}

async function describeChange({ control }: Life, { id }: LifeRow): Promise<string> {
  const [first] = await blockersOf(control, id);
  const changing = 'another transaction is changing it';
  return first === undefined ? changing : `${changing} (${describeBlocker(first)}); ${adviseEnding(first)}`;
}

/** Whether it is unknown after this failure if the transaction committed. Nothing may be undone then. */
export function isUncertain(error: unknown): boolean {
  return (
    isConnectionLoss(error) || (error instanceof Error && error.cause !== undefined && isConnectionLoss(error.cause))
  );
}

/** Passes an engine's own refusal on. Any other error means that the migration failed and was rolled back. */
export function migrationFailed(error: unknown, tenant: string): unknown {
  if (!(error instanceof Error) || isUncertain(error)) return error;
  const known = knownError(error);
  if (known !== undefined) return known;
  if (sqlStateOf(error) === noSuchDatabase)
    return new MillraceError('conflict', `tenant ${tenant} was not changed: ${error.message}`, { cause: error });
  const why = error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
  return new MillraceError('migration_failed', `tenant ${tenant} is unchanged: ${why}`, { cause: error });
}

export interface Ensuring {
  readonly engines: Pick<Engines, 'has'>;
  readonly onUpgrade?: ((from: string) => void) | undefined;
  /** How long to wait for a migration that is under way. */
  readonly lockMs: number;
}

/**
 * Runs at every start for the default tenant. Installs Millrace if it is missing. If the tenant is at an older version whose
 * engine is not available, and `onUpgrade` is given, upgrades it to this release; otherwise it stays as it is. Any number of
 * processes may do this at once. A process that finds nothing to do neither waits for a migration nor holds one up.
 */
export function ensureInstalled(
  address: Address,
  engine: Engine,
  { engines, onUpgrade, lockMs }: Ensuring,
): Promise<string[]> {
  const isDone = async (recorded: string | undefined): Promise<boolean> =>
    recorded !== undefined &&
    (onUpgrade === undefined || isNewer(recorded, engine.version) || (await engines.has(recorded)));
  return onConnection(address, async (client) => {
    const db = onClient(client);
    await db.exec(sql`select set_config('lock_timeout', ${`${lockMs}ms`}, false)`);
    if (await isDone(await recordedVersion(client))) return [];
    // held until the connection closes: processes that come meanwhile check again when there is nothing left to do
    await db.exec(sql`select pg_advisory_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`);
    const recorded = await recordedVersion(client);
    if (await isDone(recorded)) return [];
    const applied = await drainedOn(client, noHooks, (inner) => engine.migrate(inner));
    if (recorded !== undefined) onUpgrade?.(recorded);
    return applied;
  });
}

async function recordedVersion(client: ClientBase): Promise<string | undefined> {
  const db = onClient(client);
  const { there } = await db.one<{ there: boolean }>(sql`
    select to_regclass('millrace.installation') is not null as there`);
  if (!there) return undefined;
  return (await db.maybeOne<{ version: string }>(sql`select version from millrace.installation`))?.version;
}
