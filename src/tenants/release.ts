/**
 * Removes Millrace from a database that stays. It sends a RESTART, not a STOP, because its transaction may still roll back:
 * after the end of the transaction the launcher inspects the database again, and acts on what it finds.
 */
import { MillraceError } from '../errors.ts';
import { withClient } from '../postgres/databases.ts';
import { hasMigrations } from '../postgres/migrate.ts';
import { inDrained } from './drained-work.ts';
import { awaitReaders } from './await-readers.ts';
import { migrationFailed, readVersion } from './install.ts';
import {
  type Actor,
  exclusively,
  requireTenant,
  forgetKeys,
  announceChange,
  type Life,
  record,
  refuseDefault,
  makeRestartHooks,
} from './life.ts';
import * as queries from './queries.ts';

export async function releaseTenant(life: Life, name: string, { actor }: Actor): Promise<void> {
  refuseDefault(name, 'released');
  await exclusively(life, [name], async () => {
    const row = await requireTenant(life, name);
    const found = await readVersion(life, row);
    if (found === 'gone')
      throw new MillraceError(
        'conflict',
        `the database ${row.database} does not exist; \`millrace tenant drop ${name}\` removes the tenant`,
      );
    // no version: it was removed before, by a call that died or by hand, and perhaps not completely
    const isThere = found.version !== null || (await withClient(life.addressOf(row), hasMigrations));
    if (!isThere && row.discovered)
      throw new MillraceError('conflict', `Millrace is not installed in the database ${row.database}`);
    if (isThere) await removeSchema(life, row, actor);
    await forget(life, row, { version: found.version, actor });
  });
}

async function removeSchema(life: Life, row: queries.LifeRow, actor: string): Promise<void> {
  try {
    const lockMs = await awaitReaders(life, row);
    await inDrained(
      life.addressOf(row),
      makeRestartHooks({ ...life, lockMs }, row, { cause: 'release', actor }),
      (client) => client.query('drop schema if exists millrace cascade'),
    );
  } catch (error) {
    throw migrationFailed(error, row.name);
  }
}

/** Deletes the tenant and its keys. If databases are discovered, it stays listed as one without Millrace. */
async function forget(
  life: Life,
  row: queries.LifeRow,
  { version, actor }: { version: string | null; actor: string },
): Promise<void> {
  const { name, database } = row;
  await life.control.transaction(async (tx) => {
    if (life.discovers) {
      await queries.deleteKeys(tx, row.id);
      await queries.unregister(tx, row.id);
    } else await queries.deleteTenant(tx, row.id);
    await record(life, tx, { type: 'tenant.released', tenantId: row.id, body: { name, database, version }, actor });
  });
  forgetKeys(life);
  announceChange(life, row.id);
}
