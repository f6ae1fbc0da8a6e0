/**
 * Making a tenant of a database that exists. Millrace is installed in it unless it is there; where the server's databases
 * are discovered, the tenant may be listed already, and becomes one that somebody has registered.
 */
import { isUniqueViolation, MillraceError } from '../errors.ts';
import { newId } from '../kernel/id.ts';
import type { Db } from '../kernel/sql.ts';
import { adoptCommand, isGivable, nameRule } from './advice.ts';
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
    const there = await connectable(life, database);
    const before = await listed(life, wanted, there);
    const row = before ?? unlisted(wanted, there);
    const found = await readVersion(life, row);
    if (found === 'gone') throw noDatabase(database);
    if (found.version !== null) refuseOtherVersion(wanted, found.version, before);
    const adopting = { life, wanted, before, row, as: registration(wanted, before) };
    return found.version === null ? installIn(adopting) : registerOnly(adopting, found.version);
  });
  return outcome(life, adopted.tenantId, adopted.messageId, startMs);
}

/** People type what is listed: of a tenant that was found, that may be no name to be given, or not its database's. */
async function refuseListedName(life: Life, { name }: NewTenant, database: string): Promise<void> {
  const isName = isGivable(name);
  if (isName && (await queries.databaseNamed(life.control, database)) !== undefined) return;
  const row = await queries.findLifeRow(life.control, name);
  if (row?.discovered && (!isName || database === name)) {
    const how = `to adopt it: ${adoptCommand(name, row.database)}`;
    throw new MillraceError('conflict', `what is listed as ${name} is the database ${row.database}; ${how}`);
  }
  if (isName) return;
  const faults = [{ path: 'path.name', message: nameRule }];
  throw new MillraceError('bad_request', `a tenant cannot be called ${name}`, { faults });
}

interface Adopting {
  readonly life: Life;
  readonly wanted: NewTenant;
  /** As it was listed before. */
  readonly before: queries.LifeRow | undefined;
  readonly row: queries.LifeRow;
  /** As it is registered now. */
  readonly as: queries.Registration;
}

type Adopted = { readonly tenantId: string; readonly messageId: number };

function noDatabase(database: string): MillraceError {
  return new MillraceError(
    'not_found',
    `there is no database ${database} on the control database's server; \`millrace tenant create\` makes one`,
  );
}

async function connectable(life: Life, database: string): Promise<queries.DatabaseFact> {
  const there = await queries.databaseNamed(life.control, database);
  if (there === undefined) throw noDatabase(database);
  if (there.isTemplate) throw new MillraceError('conflict', `the database ${database} is a template`);
  if (!there.allowsConnections) throw new MillraceError('conflict', `the database ${database} accepts no connections`);
  return there;
}

/** The tenant that the database has already, where that may become this one. */
async function listed(
  life: Life,
  { name }: NewTenant,
  there: queries.DatabaseFact,
): Promise<queries.LifeRow | undefined> {
  const owner = await queries.rowOfDatabase(life.control, there);
  const namesake = await queries.findLifeRow(life.control, name);
  if (owner !== undefined && !owner.discovered && owner.name !== name)
    throw new MillraceError('conflict', `the database ${there.name} is that of tenant ${owner.name}`);
  if (namesake !== undefined && namesake.id !== owner?.id)
    throw new MillraceError('conflict', `there is a tenant ${name} already, in the database ${namesake.database}`);
  return owner;
}

function registration({ name, ownHost }: NewTenant, before: queries.LifeRow | undefined): queries.Registration {
  return { name, desired: 'on', discovered: false, ownHost: ownHost ?? before?.ownHost ?? false, leaving: null };
}

function unlisted({ name, ownHost = false }: NewTenant, there: queries.DatabaseFact): queries.LifeRow {
  const { name: database, oid: databaseOid } = there;
  return { id: newId(), name, database, desired: 'on', databaseOid, discovered: false, ownHost, leaving: null };
}

function refuseOtherVersion({ name, version }: NewTenant, recorded: string, before: queries.LifeRow | undefined): void {
  if (before !== undefined && !before.discovered)
    throw new MillraceError('conflict', `the database ${before.database} is that of tenant ${name} already`);
  if (version === undefined || version === recorded) return;
  const message = `it has Millrace ${recorded} already: adopt it as it is, then \`millrace tenant upgrade\``;
  throw new MillraceError('conflict', message, { faults: [{ path: 'body.version', message }] });
}

/** Millrace is there: a START is all that its scheduler needs. */
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
      : await queries.changeRegistration(tx, row.id, { from: before, to: as }).catch(taken);
  if (!done) throw new MillraceError('conflict', `tenant ${as.name} or its database has just been changed; try again`);
}

function taken(error: unknown): boolean {
  if (isUniqueViolation(error)) return false;
  throw error;
}

function recordAdoption({ life, wanted, row }: Adopting, tx: Db, version: string): Promise<void> {
  const { name, actor } = wanted;
  const body = { name, database: row.database, version };
  return record(life, tx, { type: 'tenant.adopted', tenantId: row.id, body, actor });
}

/** As it was listed before, or not at all. What somebody else has made of it meanwhile stays. */
async function undo({ life, wanted, before, row, as }: Adopting, why: unknown): Promise<void> {
  await life.control.transaction(async (tx) => {
    if (before === undefined) await queries.deleteTenant(tx, row.id);
    else await queries.changeRegistration(tx, row.id, { from: as, to: before });
    const body = { name: wanted.name, database: row.database, why: why instanceof Error ? why.message : String(why) };
    await record(life, tx, { type: 'tenant.adoption_failed', tenantId: row.id, body, actor: wanted.actor });
  });
  announceChange(life, row.id);
}
