/**
 * Installs Millrace in a tenant's database, in one transaction. The RESTART that starts the tenant's scheduler is sent
 * before the first statement, and waits until that transaction has committed or rolled back.
 */
import type { Engine } from '../contract/engine.ts';
import { isConnectionLoss, knownError, MillraceError, sqlStateOf } from '../errors.ts';
import { checkpoint } from './checkpoints.ts';
import { migrateTenant } from './install.ts';
import { look } from '../loader/inspect.ts';
import { adviseEnding, blockersOf, describeBlocker } from '../control/blockers.ts';
import { formatCause } from '../control/format-reason.ts';
import { type Actor, heard, type Life, restarting } from './life.ts';
import type { LifeRow } from './queries.ts';

/** It was dropped or renamed after the look, and perhaps another has its name. */
const noSuchDatabase = '3D000';

/** A look waits this long for a migration that is under way. */
const lookMs = 2_000;

/** Answers the RESTART's number. */
export async function install(life: Life, row: LifeRow, engine: Engine, { actor }: Actor): Promise<number> {
  const { messageId, ...telling } = restarting(life, row, { cause: `install ${engine.version}`, actor });
  try {
    await migrateTenant(life.addressOf(row), engine, telling);
  } catch (error) {
    throw migrationFailed(error, row.name);
  }
  checkpoint('tenant.installed');
  heard(life, row.id);
  return messageId();
}

/** What is in the tenant's database; one that cannot be looked at is an error. */
export async function seen(life: Life, row: LifeRow): Promise<{ readonly version: string | null } | 'gone'> {
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
