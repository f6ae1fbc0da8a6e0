/**
 * Adopts an existing database as a tenant, and installs Millrace in it if it is missing. If the server's databases are
 * discovered, the tenant may already be listed; adopting makes it a registered one.
 */
import { isUniqueViolation, MillraceError } from '../errors.ts';
import { newId } from '../kernel/id.ts';
import type { Db } from '../kernel/sql.ts';
import { adoptCommand, isTenantName, nameRule } from './advice.ts';
import { type NewTenant, startMs } from './create.ts';
import { install, isUncertain, readVersion } from './install.ts';
import {
  engineFor,
  exclusively,
  announceChange,
  type Life,
  type Ordered,
  outcome,
  record,
  refuseDatabase,
  wishFor,
} from './life.ts';
import * as queries from './queries.ts';

export async function adoptTenant(life: Life, wanted: NewTenant): Promise<Ordered> {
  const database = wanted.database ?? wanted.name;
  refuseDatabase(life, database, wanted.database === undefined ? 'path.name' : 'body.database');
  await refuseListedName(life, wanted, database);
  const adopted = await exclusively(life, [wanted.name], async () => {
    const there = await requireConnectable(life, database);
    const before = await findListed(life, wanted, there);
    const row = before ?? makeRow(wanted, there);
    const found = await readVersion(life, row);
    if (found === 'gone') throw noDatabase(database);
    if (found.version !== null) refuseOtherVersion(wanted, found.version, before);
    const adopting = { life, wanted, before, row, as: registration(wanted, before) };
    return found.version === null ? installIn(adopting) : registerOnly(adopting, found.version);
  });
  return outcome(life, adopted.tenantId, adopted.messageId, startMs);
}

/**
 * Refuses the listed name of a discovered tenant if that name is not allowed for tenants, or is not the name of its database.
 * The error proposes the command that adopts it.
 */
async function refuseListedName(life: Life, { name }: NewTenant, database: string): Promise<void> {
  const isName = isTenantName(name);
  if (isName && (await queries.databaseNamed(life.control, database)) !== undefined) return;
  const row = await queries.findLifeRow(life.control, name);
  if (row?.discovered && (!isName || database === name)) {
    const how = `to adopt it: ${adoptCommand(name, row.database)}`;
    throw new MillraceError('conflict', `the discovered tenant ${name} is the database ${row.database}; ${how}`);
  }
  if (isName) return;
  const faults = [{ path: 'path.name', message: nameRule }];
  throw new MillraceError('bad_request', `a tenant cannot be called ${name}`, { faults });
}

interface Adopting {
  readonly life: Life;
  readonly wanted: NewTenant;
  /** The row before the adoption; undefined if the database was not listed. */
  readonly before: queries.LifeRow | undefined;
  readonly row: queries.LifeRow;
  /** The registration that the adoption writes. */
  readonly as: queries.Registration;
}

type Adopted = { readonly tenantId: string; readonly messageId: number };

function noDatabase(database: string): MillraceError {
  return new MillraceError(
    'not_found',
    `there is no database ${database} on the control database's server; \`millrace tenant create\` makes one`,
  );
}

async function requireConnectable(life: Life, database: string): Promise<queries.DatabaseFact> {
  const there = await queries.databaseNamed(life.control, database);
  if (there === undefined) throw noDatabase(database);
  if (there.isTemplate) throw new MillraceError('conflict', `the database ${database} is a template`);
  if (!there.allowsConnections) throw new MillraceError('conflict', `the database ${database} accepts no connections`);
  return there;
}

/** The listed tenant of the database, if it may become the wanted one; undefined if the database is not listed. */
async function findListed(
  life: Life,
  { name }: NewTenant,
  there: queries.DatabaseFact,
): Promise<queries.LifeRow | undefined> {
  const owner = await queries.rowOfDatabase(life.control, there);
  const namesake = await queries.findLifeRow(life.control, name);
  if (owner !== undefined && !owner.discovered && owner.name !== name)
    throw new MillraceError('conflict', `the database ${there.name} belongs to tenant ${owner.name}`);
  if (namesake !== undefined && namesake.id !== owner?.id)
    throw new MillraceError('conflict', `there is a tenant ${name} already, in the database ${namesake.database}`);
  return owner;
}

function registration({ name, ownHost }: NewTenant, before: queries.LifeRow | undefined): queries.Registration {
  return { name, desired: 'on', discovered: false, ownHost: ownHost ?? before?.ownHost ?? false, leaving: null };
}

function makeRow({ name, ownHost = false }: NewTenant, there: queries.DatabaseFact): queries.LifeRow {
  const { name: database, oid: databaseOid } = there;
  return { id: newId(), name, database, desired: 'on', databaseOid, discovered: false, ownHost, leaving: null };
}

function refuseOtherVersion({ name, version }: NewTenant, recorded: string, before: queries.LifeRow | undefined): void {
  if (before !== undefined && !before.discovered)
    throw new MillraceError('conflict', `the database ${before.database} already belongs to tenant ${name}`);
  if (version === undefined || version === recorded) return;
  const message = `it has Millrace ${recorded} already: adopt it as it is, then \`millrace tenant upgrade\``;
  throw new MillraceError('conflict', message, { faults: [{ path: 'body.version', message }] });
}

/** For a database that has Millrace: registers the tenant, and sends a START for its scheduler. */
async function registerOnly(adopting: Adopting, version: string): Promise<Adopted> {
  const { life, wanted, row } = adopting;
  const messageId = await life.control.transaction(async (tx) => {
    await register(adopting, tx);
    const wish = { kind: 'start', cause: 'adopted', actor: wanted.actor } as const;
    const id = await wishFor(life, tx, { ...row, name: wanted.name }, wish);
    await recordAdoption(adopting, tx, version);
    return id;
  });
  announceChange(life, row.id);
  return { tenantId: row.id, messageId };
}

async function installIn(adopting: Adopting): Promise<Adopted> {
  const { life, wanted, row } = adopting;
  const engine = await engineFor(life, wanted.version ?? life.version, 'body.version');
  await life.control.transaction(async (tx) => {
    await register(adopting, tx);
    await recordAdoption(adopting, tx, engine.version);
  });
  try {
    return { tenantId: row.id, messageId: await install(life, { ...row, name: wanted.name }, engine, wanted) };
  } catch (error) {
    if (!isUncertain(error)) await undo(adopting, error);
    throw error;
  }
}

async function register({ life, before, row, as }: Adopting, tx: Db): Promise<void> {
  const done =
    before === undefined
      ? await queries.insertTenant(tx, { ...row, at: new Date(life.time.now()) })
      : await queries.changeRegistration(tx, row.id, { from: before, to: as }).catch(falseIfTaken);
  if (!done) throw new MillraceError('conflict', `tenant ${as.name} or its database has just been changed; try again`);
}

function falseIfTaken(error: unknown): boolean {
  if (isUniqueViolation(error)) return false;
  throw error;
}

function recordAdoption({ life, wanted, row }: Adopting, tx: Db, version: string): Promise<void> {
  const { name, actor } = wanted;
  const body = { name, database: row.database, version };
  return record(life, tx, { type: 'tenant.adopted', tenantId: row.id, body, actor });
}

/** Restores the row as it was before, or deletes it. A change that another process has made meanwhile stays. */
async function undo({ life, wanted, before, row, as }: Adopting, why: unknown): Promise<void> {
  await life.control.transaction(async (tx) => {
    if (before === undefined) await queries.deleteTenant(tx, row.id);
    else await queries.changeRegistration(tx, row.id, { from: as, to: before });
    const body = { name: wanted.name, database: row.database, why: why instanceof Error ? why.message : String(why) };
    await record(life, tx, { type: 'tenant.adoption_failed', tenantId: row.id, body, actor: wanted.actor });
  });
  announceChange(life, row.id);
}
