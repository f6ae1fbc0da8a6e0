/**
 * Compares tenants with the databases of the server: new databases become tenants if the installation discovers, renamed ones
 * are followed by their oid, and discovered tenants are deleted when their database is gone. A pure function decides; the
 * changes and their events are written in one transaction.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import { append, type EventDraft, tenantTopic } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { isAddressable } from '../../postgres/address.ts';
import { cut } from '../../postgres/pool/pool.ts';
import type { Presence } from '../supervisor.ts';

export interface Database {
  readonly oid: number;
  readonly name: string;
  readonly template: boolean;
  /** Accepts connections, and its drop was not interrupted. */
  readonly connectable: boolean;
}

export interface KnownTenant {
  readonly id: string;
  readonly name: string;
  readonly database: string;
  readonly databaseOid: number | null;
  readonly discovered: boolean;
  /** Its database is on another server. */
  readonly elsewhere: boolean;
}

export interface DiscoveryRules {
  /** `registered`: only databases that were registered as tenants. */
  readonly discover: 'all' | 'registered';
  readonly controlDatabase: string;
}

export interface Discovered {
  readonly found: readonly {
    readonly id: string;
    readonly name: string;
    readonly database: string;
    readonly oid: number;
  }[];
  /** The oid of a tenant's database is new: it was seen for the first time, or created again under the same name. */
  readonly seen: readonly { readonly id: string; readonly from: number | null; readonly oid: number }[];
  /** The tenant's database was renamed; or it is gone, and another one has its name. */
  readonly renamed: readonly {
    readonly id: string;
    readonly from: { readonly name: string; readonly database: string };
    readonly name: string;
    readonly database: string;
  }[];
  readonly gone: readonly {
    readonly id: string;
    readonly name: string;
    readonly database: string;
    readonly oid: number | null;
  }[];
}

/** PostgreSQL's limit for names. */
const maxNameBytes = 63;

export function readDatabases(db: Db): Promise<Database[]> {
  return db.rows<Database>(sql`
    select oid, datname as name, datistemplate as template, datallowconn and datconnlimit <> -2 as connectable
      from pg_database`);
}

/** The presence of each tenant's database. */
export function presences(
  tenants: readonly KnownTenant[],
  databases: readonly Database[],
): ReadonlyMap<string, Presence> {
  const which = identify(tenants, databases);
  return new Map(tenants.map((tenant) => [tenant.id, presenceOf(tenant, which.get(tenant.id))]));
}

function presenceOf({ elsewhere }: KnownTenant, database: Database | undefined): Presence {
  if (elsewhere) return 'unlisted';
  if (database === undefined) return 'gone';
  if (!isAddressable(database.name)) return 'unnameable';
  if (database.template) return 'template';
  return database.connectable ? 'there' : 'refusing';
}

/** Finds each tenant's database: the one with the recorded oid, whatever its name; else an unclaimed one of the recorded name. */
function identify(tenants: readonly KnownTenant[], databases: readonly Database[]): ReadonlyMap<string, Database> {
  const byOid = new Map(databases.map((database) => [database.oid, database]));
  const byName = new Map(databases.map((database) => [database.name, database]));
  const claimed = new Set(tenants.map(({ databaseOid }) => databaseOid));
  const which = new Map<string, Database>();
  for (const { id, database, databaseOid, elsewhere } of tenants) {
    const namesake = byName.get(database);
    const free = namesake !== undefined && !claimed.has(namesake.oid) ? namesake : undefined;
    const its = (databaseOid === null ? undefined : byOid.get(databaseOid)) ?? free;
    if (elsewhere || its === undefined) continue;
    claimed.add(its.oid);
    which.set(id, its);
  }
  return which;
}

/** Works for any input: in the result, no two tenants have the same name or database. */
export function discover(
  tenants: readonly KnownTenant[],
  databases: readonly Database[],
  rules: DiscoveryRules,
): Discovered {
  const which = identify(tenants, databases);
  const gone = tenants.filter((tenant) => !which.has(tenant.id) && isForgotten(tenant, rules));
  const goneIds = new Set(gone.map(({ id }) => id));
  const staying = tenants.filter(({ id }) => !goneIds.has(id));
  const titles = titlesOf(staying, which);
  const renamed = staying.flatMap(({ id, name, database }) => {
    const to = titles.get(id);
    const same = to === undefined || (to.name === name && to.database === database);
    return same ? [] : { id, from: { name, database }, ...to };
  });
  const seen = staying.flatMap(({ id, databaseOid }) => {
    const oid = which.get(id)?.oid;
    return oid === undefined || oid === databaseOid ? [] : { id, from: databaseOid, oid };
  });
  const found = rules.discover === 'all' ? findNew(databases, { tenants, which, titles, rules }) : [];
  const forgotten = gone.map(({ id, name, database, databaseOid: oid }) => ({ id, name, database, oid }));
  return { found, seen, renamed, gone: forgotten };
}

function isForgotten({ name, databaseOid, discovered, elsewhere }: KnownTenant, rules: DiscoveryRules): boolean {
  // a tenant without an oid may be about to be created
  return name !== defaultTenant && !elsewhere && databaseOid !== null && (discovered || rules.discover === 'all');
}

interface Title {
  readonly name: string;
  readonly database: string;
}

/** The names of each tenant and its database from now on. A tenant without a database gives way to one with that name. */
function titlesOf(tenants: readonly KnownTenant[], which: ReadonlyMap<string, Database>): Map<string, Title> {
  const present = tenants.filter(({ id }) => which.has(id));
  const absent = tenants.filter(({ id }) => !which.has(id));
  const taken = new Set<string>();
  const databases = new Map<string, string>();
  for (const tenant of [...present, ...absent]) {
    const wanted = which.get(tenant.id)?.name ?? tenant.database;
    const database = chooseFree(taken, wanted, (n) => markAbsent(tenant, wanted, n));
    taken.add(database);
    databases.set(tenant.id, database);
  }
  const names = namesOf(tenants, which);
  return new Map(
    tenants.map(({ id, name, database }) => [
      id,
      { name: names.get(id) ?? name, database: databases.get(id) ?? database },
    ]),
  );
}

/** Returns the first name that is not taken: `wanted`, or one of its alternatives. */
function chooseFree(taken: ReadonlySet<string>, wanted: string, other: (n: number) => string): string {
  let name = wanted;
  for (let n = 1; taken.has(name); n++) name = other(n);
  return name;
}

/** Marks the name of a database that is gone or elsewhere, because another one has its name now. At most 63 bytes long. */
function markAbsent({ id, databaseOid, elsewhere }: KnownTenant, name: string, n: number): string {
  const what = elsewhere ? 'elsewhere' : `gone, ${databaseOid ?? id}`;
  const mark = n === 1 ? ` (${what})` : ` (${what}, ${n})`;
  return `${cut(name, maxNameBytes - Buffer.byteLength(mark))}${mark}`;
}

/** A tenant with the name of its database is renamed with it, if the new name is free. Two tenants may swap names. */
function namesOf(tenants: readonly KnownTenant[], which: ReadonlyMap<string, Database>): Map<string, string> {
  const wishes = new Map<string, string>();
  for (const { id, name, database } of tenants) {
    const to = which.get(id)?.name ?? database;
    if (name === database && name !== defaultTenant && to !== name) wishes.set(id, to);
  }
  const kept = new Set(tenants.filter(({ id }) => !wishes.has(id)).map(({ name }) => name));
  // a tenant that keeps its name may prevent another from taking it, and so on
  for (let before = -1; before !== wishes.size; ) {
    before = wishes.size;
    for (const { id, name } of tenants) {
      const wish = wishes.get(id);
      if (wish === undefined || !kept.has(wish)) continue;
      wishes.delete(id);
      kept.add(name);
    }
  }
  return wishes;
}

interface Known {
  readonly tenants: readonly KnownTenant[];
  readonly which: ReadonlyMap<string, Database>;
  readonly titles: ReadonlyMap<string, Title>;
  readonly rules: DiscoveryRules;
}

function findNew(
  databases: readonly Database[],
  { tenants, which, titles, rules }: Known,
): Discovered['found'][number][] {
  const claimed = new Set([
    ...tenants.map(({ databaseOid }) => databaseOid),
    ...[...which.values()].map(({ oid }) => oid),
  ]);
  const names = new Set([...titles.values()].map(({ name }) => name));
  const registered = new Set([...titles.values()].map(({ database }) => database));
  return databases
    .filter(({ oid, name, template, connectable }) => {
      const own = name === rules.controlDatabase || name === 'postgres';
      return connectable && !template && !own && !claimed.has(oid) && !registered.has(name) && isAddressable(name);
    })
    .map(({ oid, name: database }) => {
      const name = chooseFree(names, database, (n) => (n === 1 ? `${database}-${oid}` : `${database}-${oid}-${n}`));
      names.add(name);
      return { id: newId(), name, database, oid };
    });
}

export function isNothing({ found, seen, renamed, gone }: Discovered): boolean {
  return found.length + seen.length + renamed.length + gone.length === 0;
}

/**
 * Call it in a transaction of the launcher. A tenant that was created, renamed or dropped since it was read stays as it is,
 * and gets no event.
 */
export async function writeDiscovered(tx: Db, { found, seen, renamed, gone }: Discovered, at: Date): Promise<void> {
  const forgotten = await writeGone(tx, gone);
  const called = await writeRenamed(tx, renamed);
  if (seen.length > 0) await writeSeen(tx, seen);
  const made = await writeFound(tx, found, at);
  const drafts: EventDraft[] = [
    ...gone
      .filter(({ id }) => forgotten.has(id))
      .map(({ id, name, database }) => draft('tenant.gone', id, { name, database })),
    ...renamed
      .filter(({ id }) => called.has(id))
      .map(({ id, from, name, database }) => draft('tenant.renamed', id, makeRenamedBody(from, { name, database }))),
    ...found
      .filter(({ id }) => made.has(id))
      .map(({ id, name, database }) => draft('tenant.discovered', id, { name, database })),
  ];
  if (drafts.length > 0) await append(tx, tenantTopic, drafts, { actor: 'installation', at });
}

interface Called {
  readonly name: string;
  readonly database: string;
}

/** The body of the event for a renamed tenant or database, by a command or by plain SQL. */
export function makeRenamedBody(from: Called, { name, database }: Called): EventDraft['body'] {
  return { name, from: from.name, to: name, from_database: from.database, database };
}

function draft(type: string, subject: string, body: EventDraft['body']): EventDraft {
  return { type, subject, body };
}

async function writeGone(tx: Db, gone: Discovered['gone']): Promise<Set<string>> {
  if (gone.length === 0) return new Set();
  const rows = await tx.rows<{ id: string }>(sql`
    delete from tenant
     using unnest(${gone.map(({ id }) => id)}::uuid[], ${gone.map(({ oid }) => oid)}::oid[]) as g (id, oid)
     where tenant.id = g.id and tenant.database_oid = g.oid
    returning tenant.id`);
  return idsOf(rows);
}

async function writeSeen(tx: Db, seen: Discovered['seen']): Promise<void> {
  await tx.exec(sql`
    update tenant set database_oid = s.oid
      from unnest(${seen.map(({ id }) => id)}::uuid[], ${seen.map(({ from }) => from)}::oid[], ${seen.map(({ oid }) => oid)}::oid[])
        as s (id, was, oid)
     where tenant.id = s.id and tenant.database_oid is not distinct from s.was`);
}

/**
 * Writes in two steps, because two databases may have swapped names. The names in between are longer than any database's name
 * can be.
 */
async function writeRenamed(tx: Db, renamed: Discovered['renamed']): Promise<Set<string>> {
  if (renamed.length === 0) return new Set();
  const rows = await tx.rows<{ id: string }>(sql`
    update tenant set database = rpad(id::text, 300, '.'), name = rpad(id::text, 300, '.')
      from unnest(${renamed.map(({ id }) => id)}::uuid[], ${renamed.map(({ from }) => from.database)}::text[],
                  ${renamed.map(({ from }) => from.name)}::text[]) as r (renamed, database, name)
     where tenant.id = r.renamed and tenant.database = r.database and tenant.name = r.name
    returning id`);
  const free = idsOf(rows);
  const left = renamed.filter(({ id }) => free.has(id));
  await tx.exec(sql`
    update tenant set database = r.database, name = r.name
      from unnest(${left.map(({ id }) => id)}::uuid[], ${left.map(({ database }) => database)}::text[],
                  ${left.map(({ name }) => name)}::text[]) as r (id, database, name)
     where tenant.id = r.id`);
  return free;
}

async function writeFound(tx: Db, found: Discovered['found'], at: Date): Promise<Set<string>> {
  if (found.length === 0) return new Set();
  const rows = await tx.rows<{ id: string }>(sql`
    insert into tenant (id, name, database, database_oid, discovered, created_at)
    select f.id, f.name, f.database, f.oid, true, ${at}
      from unnest(${found.map(({ id }) => id)}::uuid[], ${found.map(({ name }) => name)}::text[],
                  ${found.map(({ database }) => database)}::text[], ${found.map(({ oid }) => oid)}::oid[])
        as f (id, name, database, oid)
    on conflict do nothing
    returning id`);
  return idsOf(rows);
}

function idsOf(rows: readonly { readonly id: string }[]): Set<string> {
  return new Set(rows.map(({ id }) => id));
}
