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
import { drainedOn, inDrained, onConnection, type Telling } from './drained-work.ts';
import { type Actor, announceChange, type Life, restarting } from './life.ts';
import type { LifeRow } from './queries.ts';

/** The database was dropped or renamed after the look, and perhaps another one has its name. */
const noSuchDatabase = '3D000';

/** How long a look waits for a migration that is under way. */
const lookMs = 2_000;

/** For a tenant that no process uses yet. */
const silently: Telling = { onBegin: async () => {}, remind: () => {} };

/** Brings the schema to the engine's version. Returns what was done, as `engine.pending` names it. */
export function migrateTenant(address: Address, engine: Engine, telling: Partial<Telling> = {}): Promise<string[]> {
  return inDrained(address, { ...silently, ...telling }, (client) => engine.migrate(client));
}

/** Answers the RESTART's number. */
export async function install(life: Life, row: LifeRow, engine: Engine, { actor }: Actor): Promise<number> {
  const { messageId, ...telling } = restarting(life, row, { cause: `install ${engine.version}`, actor });
  try {
    await migrateTenant(life.addressOf(row), engine, telling);
  } catch (error) {
    throw migrationFailed(error, row.name);
  }
  checkpoint('tenant.installed');
  announceChange(life, row.id);
  return messageId();
}

/** What is in the tenant's database; one that cannot be looked at is an error. */
export async function readVersion(life: Life, row: LifeRow): Promise<{ readonly version: string | null } | 'gone'> {
  const found = await look(life.addressOf(row), lookMs);
  if (found.kind === 'gone') return 'gone';
  if (found.kind === 'installed') return { version: found.version };
  if (found.kind === 'not_installed') return { version: null };
  const why = found.kind === 'unreachable' ? formatCause(found.reason) : await whoChanges(life, row);
  throw new MillraceError(
    'tenant_unavailable',
    `the database ${row.database} of tenant ${row.name} cannot be used: ${why}`,
  );
}

async function whoChanges({ control }: Life, { id }: LifeRow): Promise<string> {
  const [first] = await blockersOf(control, id);
  const changing = 'another transaction is changing it';
  return first === undefined ? changing : `${changing} (${describeBlocker(first)}); ${adviseEnding(first)}`;
}

/** Whether a failure leaves open what became of the transaction: nothing may be undone then. */
export function isUncertain(error: unknown): boolean {
  return (
    isConnectionLoss(error) || (error instanceof Error && error.cause !== undefined && isConnectionLoss(error.cause))
  );
}

/** An engine's own refusal is told as it is; everything else is a migration that failed, and was rolled back. */
export function migrationFailed(error: unknown, tenant: string): unknown {
  if (!(error instanceof Error) || isUncertain(error)) return error;
  const known = knownError(error);
  if (known !== undefined) return known;
  if (sqlStateOf(error) === noSuchDatabase)
    return new MillraceError('conflict', `tenant ${tenant} was not changed: ${error.message}`, { cause: error });
  const why = error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
  return new MillraceError('migration_failed', `tenant ${tenant} is as it was: ${why}`, { cause: error });
}

export interface Ensuring {
  readonly engines: Pick<Engines, 'has'>;
  readonly onUpgrade?: ((from: string) => void) | undefined;
  /** How long whoever is changing the tenant is waited for. */
  readonly lockMs: number;
}

/**
 * What every start does to the default tenant: installs it where it is not. Where nothing here could serve it, and somebody
 * listens (`onUpgrade`), it is brought to this release; else it stays as it is. Any number may do this at once; who finds
 * nothing to do disturbs nobody, and is kept by nobody.
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
    // kept until we are gone: those who come meanwhile look only when there is nothing left to do
    await db.exec(sql`select pg_advisory_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`);
    const recorded = await recordedVersion(client);
    if (await isDone(recorded)) return [];
    const applied = await drainedOn(client, silently, (inner) => engine.migrate(inner));
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
