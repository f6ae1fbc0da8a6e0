/**
 * Drops a tenant with its database. It sends a STOP, at which our own sessions leave the database. PostgreSQL waits five
 * seconds for the others to leave; then we end them. A drop that dies on the way leaves a tenant that is off and marked as
 * leaving: a second `drop` completes it, `start` takes it back.
 */
import type { Client } from 'pg';
import { isInUse, MillraceError, sqlStateOf } from '../errors.ts';
import { checkpoint } from './checkpoints.ts';
import { quoted } from '../postgres/databases.ts';
import {
  type Actor,
  exclusively,
  requireTenant,
  forgetKeys,
  announceChange,
  type Life,
  record,
  explainRefusal,
  refuseDefault,
  wishFor,
} from './life.ts';
import * as queries from './queries.ts';

/** SQLSTATE of an attempt to end a session of a role that ours may not act for. */
const mayNotEnd = '42501';

export async function dropTenant(life: Life, name: string, { actor }: Actor): Promise<void> {
  refuseDefault(name, 'dropped');
  await exclusively(life, [name], async (client) => {
    const row = await requireTenant(life, name);
    const there = await queries.databaseOf(life.control, row);
    if (there?.name === life.controlAddress.database)
      throw new MillraceError('conflict', `the database ${there.name} is the control database`);
    if (there?.isTemplate) throw isTemplate(there.name);
    await stop(life, row, actor);
    checkpoint('tenant.stopped');
    try {
      if (there !== undefined) await dropDatabase(client, there.name);
    } catch (error) {
      await resume(life, row, actor);
      throw await explainRefusal(client, { database: there?.name ?? row.database, what: 'dropped' }, error);
    }
    checkpoint('tenant.dropped');
    await forget(life, row, actor);
  });
}

function isTemplate(database: string): MillraceError {
  const first = `alter database ${quoted(database)} is_template false`;
  return new MillraceError('conflict', `the database ${database} is a template; before you drop it, run: ${first}`);
}

async function stop(life: Life, row: queries.LifeRow, actor: string): Promise<void> {
  await life.control.transaction(async (tx) => {
    await queries.setLeaving(tx, row.id);
    await wishFor(life, tx, row, { kind: 'stop', cause: 'drop', actor });
  });
  announceChange(life, row.id);
}

/** Restores the desired state from before the drop. */
async function resume(life: Life, row: queries.LifeRow, actor: string): Promise<void> {
  await life.control.transaction(async (tx) => {
    if ((await queries.setStaying(tx, row.id)) === 'on')
      await wishFor(life, tx, row, { kind: 'start', cause: 'its database was not dropped', actor });
  });
  announceChange(life, row.id);
}

async function dropDatabase(client: Client, database: string): Promise<void> {
  try {
    await client.query(`drop database if exists ${quoted(database)}`);
  } catch (error) {
    if (!isInUse(error)) throw error;
    await client.query(`drop database if exists ${quoted(database)} with (force)`).catch((again: unknown) => {
      // the first error says that the database is in use; `explainRefusal` adds the sessions that our role may not end
      throw sqlStateOf(again) === mayNotEnd ? error : again;
    });
  }
}

async function forget(life: Life, row: queries.LifeRow, actor: string): Promise<void> {
  const { name, database } = row;
  await life.control.transaction(async (tx) => {
    await queries.deleteTenant(tx, row.id);
    await record(life, tx, { type: 'tenant.dropped', tenantId: row.id, body: { name, database }, actor });
  });
  forgetKeys(life);
  announceChange(life, row.id);
}
