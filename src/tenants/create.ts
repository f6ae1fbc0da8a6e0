/**
 * Creates a tenant: first its row, then its database, then Millrace in it.
 *
 * - The row comes first, so that every database has an owner.
 * - If the process dies on the way, the same call finds what exists and completes it.
 * - If a step fails, the steps before it are undone.
 */
import type { Client } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { MillraceError } from '../errors.ts';
import { checkpoint } from './checkpoints.ts';
import { newId } from '../kernel/id.ts';
import { ensureDatabase, quoted } from '../postgres/databases.ts';
import { adoptCommand } from './advice.ts';
import { install, isUncertain, readVersion } from './install.ts';
import {
  type Actor,
  addressIn,
  engineFor,
  exclusively,
  announceChange,
  type Life,
  type Ordered,
  outcome,
  record,
  refuseDatabase,
} from './life.ts';
import * as queries from './queries.ts';

export interface NewTenant extends Actor {
  readonly name: string;
  /** Default: the tenant's name. */
  readonly database?: string | undefined;
  /** Default: the running release. */
  readonly version?: string | undefined;
  readonly ownHost?: boolean | undefined;
}

/** How long a response waits for the scheduler to start. */
export const startMs = 10_000;

export async function createTenant(life: Life, wanted: NewTenant): Promise<Ordered> {
  const database = wanted.database ?? wanted.name;
  refuseDatabase(life, database, wanted.database === undefined ? 'body.name' : 'body.database');
  const engine = await engineFor(life, wanted.version ?? life.version, 'body.version');
  const made = await exclusively(life, [wanted.name], async (client) => {
    const row = await findUnfinished(life, wanted, database);
    return row === undefined
      ? makeAnew({ life, client, wanted, engine, database })
      : complete({ life, client, wanted, engine, database }, row);
  });
  return outcome(life, made.tenantId, made.messageId, startMs);
}

interface Making {
  readonly life: Life;
  readonly client: Client;
  readonly wanted: NewTenant;
  readonly engine: Engine;
  readonly database: string;
}

type Made = { readonly tenantId: string; readonly messageId: number };

/** The row that an interrupted call has left, or undefined if there is none. Throws if the tenant or database is taken. */
async function findUnfinished(life: Life, { name }: NewTenant, database: string): Promise<queries.LifeRow | undefined> {
  const row = await queries.findLifeRow(life.control, name);
  if (row === undefined) {
    const there = await queries.databaseNamed(life.control, database);
    if (there === undefined) return undefined;
    throw await databaseTaken(life, name, there);
  }
  if (row.leaving !== null) throw interruptedDrop(row);
  if (row.discovered) throw adoptInstead(name, row.database);
  if (row.database !== database || life.isElsewhere(row)) throw tenantExists(row);
  const found = await readVersion(life, row);
  if (found !== 'gone' && found.version !== null) throw tenantExists(row);
  await refuseOtherDatabase(life, row);
  return row;
}

/** Throws if the tenant's own database was renamed, or if it is gone and another database has its name. */
async function refuseOtherDatabase(life: Life, row: queries.LifeRow): Promise<void> {
  if (row.databaseOid === null) return;
  const own = await queries.databaseOf(life.control, row);
  if (own !== undefined && own.name !== row.database) throw tenantExists({ ...row, database: own.name });
  if (own !== undefined || (await queries.databaseNamed(life.control, row.database)) === undefined) return;
  throw new MillraceError(
    'conflict',
    `the database ${row.database} is not the one that tenant ${row.name} had; \`millrace tenant drop ${row.name}\` removes the tenant`,
  );
}

function tenantExists({ name, database }: queries.LifeRow): MillraceError {
  return new MillraceError('conflict', `there is a tenant ${name} already, in the database ${database}`);
}

function interruptedDrop({ name }: queries.LifeRow): MillraceError {
  const ways = `\`millrace tenant drop ${name}\` completes the drop, \`millrace tenant start ${name}\` takes it back`;
  return new MillraceError('conflict', `there is a tenant ${name} whose drop was interrupted: ${ways}`);
}

/** Names the owner of the database. Proposes to adopt the database only if that would succeed. */
async function databaseTaken(life: Life, name: string, there: queries.DatabaseFact): Promise<MillraceError> {
  const owner = await queries.rowOfDatabase(life.control, there);
  if (owner !== undefined && !owner.discovered)
    return new MillraceError('conflict', `the database ${there.name} belongs to tenant ${owner.name}; name another`);
  if (there.isTemplate || !there.allowsConnections)
    return new MillraceError('conflict', `there is a database ${there.name} already; name another`);
  return adoptInstead(name, there.name);
}

function adoptInstead(name: string, database: string): MillraceError {
  const detail = `there is a database ${database} already; to make a tenant of it: ${adoptCommand(name, database)}`;
  return new MillraceError('conflict', detail);
}

async function makeAnew(making: Making): Promise<Made> {
  const row = await register(making);
  checkpoint('tenant.registered');
  try {
    // another session has created it since we checked
    if (!(await makeDatabase(making))) throw adoptInstead(row.name, row.database);
    checkpoint('tenant.made');
  } catch (error) {
    if (!isUncertain(error)) await unregister(making, row, error);
    throw error;
  }
  try {
    return await putInto(making, row);
  } catch (error) {
    if (!isUncertain(error) && (await dropEmpty(making))) await unregister(making, row, error);
    throw error;
  }
}

async function complete(making: Making, row: queries.LifeRow): Promise<Made> {
  await makeDatabase(making);
  return putInto(making, row);
}

async function register({ life, wanted, database, engine }: Making): Promise<queries.LifeRow> {
  const { name, actor, ownHost = false } = wanted;
  const asMade = { desired: 'on', databaseOid: null, discovered: false, leaving: null } as const;
  const row = { id: newId(), name, database, ownHost, ...asMade };
  await life.control.transaction(async (tx) => {
    if (!(await queries.insertTenant(tx, { ...row, at: new Date(life.time.now()) }))) {
      throw new MillraceError('conflict', `the name ${name} or the database ${database} belongs to another tenant`);
    }
    const body = { name, database, version: engine.version };
    await record(life, tx, { type: 'tenant.created', tenantId: row.id, body, actor });
  });
  return row;
}

/** Returns false if the database already exists. */
function makeDatabase({ life, database }: Making): Promise<boolean> {
  return ensureDatabase(addressIn(life, database));
}

/** Records the database's oid first, so that the installation goes into that database and no other. */
async function putInto({ life, wanted, engine }: Making, { id, name }: queries.LifeRow): Promise<Made> {
  await queries.recordDatabaseOid(life.control, id);
  const row = await queries.findLifeRow(life.control, name);
  if (row?.id !== id) throw new MillraceError('conflict', `tenant ${name} has just been changed; try again`);
  return { tenantId: id, messageId: await install(life, row, engine, wanted) };
}

/** Returns whether the database is gone. It stays if it has other sessions; another `create` then completes the tenant. */
async function dropEmpty({ client, database }: Making): Promise<boolean> {
  return client.query(`drop database ${quoted(database)}`).then(
    () => true,
    () => false,
  );
}

async function unregister({ life, wanted }: Making, row: queries.LifeRow, why: unknown): Promise<void> {
  await life.control.transaction(async (tx) => {
    if (!(await queries.deleteTenant(tx, row.id))) return;
    const body = { name: row.name, database: row.database, why: why instanceof Error ? why.message : String(why) };
    await record(life, tx, { type: 'tenant.creation_failed', tenantId: row.id, body, actor: wanted.actor });
  });
  announceChange(life, row.id);
}
