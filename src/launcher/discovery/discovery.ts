/**
 * Tenants and the databases of the server, brought together: new databases become tenants where the installation discovers,
 * renamed ones are followed by their oid, and tenants whose database is gone go with it. What is to be done is worked out
 * by a pure function; it is written with its events in one transaction.
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
  /** Takes connections, and is not the rest of a drop that was interrupted. */
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
  /** `registered`: only those that somebody has made tenants. */
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
  /** Its database is this one: seen for the first time, or made anew under the same name. */
  readonly seen: readonly { readonly id: string; readonly from: number | null; readonly oid: number }[];
  /** Its database is called otherwise; or is gone, and another one has its name. */
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

/** Of a database, in bytes. */
const longestName = 63;

export function readDatabases(db: Db): Promise<Database[]> {
  return db.rows<Database>(sql`
    select oid, datname as name, datistemplate as template, datallowconn and datconnlimit <> -2 as connectable
      from pg_database`);
}

/** Of each tenant's database. */
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

/** Which database is each tenant's: the one it has had, whatever that is called now; else one of its name that is nobody's. */
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

/** Total: whatever there is, no two tenants have one name or one database in what comes of it. */
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
  // one that was never seen may be about to be made
  return name !== defaultTenant && !elsewhere && databaseOid !== null && (discovered || rules.discover === 'all');
}

interface Title {
  readonly name: string;
  readonly database: string;
}

/** What each tenant and its database are called from now on. Who has a database has its name; who has none gives way. */
function titlesOf(tenants: readonly KnownTenant[], which: ReadonlyMap<string, Database>): Map<string, Title> {
  const present = tenants.filter(({ id }) => which.has(id));
  const absent = tenants.filter(({ id }) => !which.has(id));
  const taken = new Set<string>();
  const databases = new Map<string, string>();
  for (const tenant of [...present, ...absent]) {
    const wanted = which.get(tenant.id)?.name ?? tenant.database;
    const database = unlike(taken, wanted, (n) => withoutItsName(tenant, wanted, n));
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

/** The first that is not taken. */
function unlike(taken: ReadonlySet<string>, wanted: string, other: (n: number) => string): string {
  let name = wanted;
  for (let n = 1; taken.has(name); n++) name = other(n);
  return name;
}

/** Its database is gone or elsewhere, and another one has its name now. Short enough that PostgreSQL cuts nothing off. */
function withoutItsName({ id, databaseOid, elsewhere }: KnownTenant, name: string, n: number): string {
  const what = elsewhere ? 'elsewhere' : `gone, ${databaseOid ?? id}`;
  const mark = n === 1 ? ` (${what})` : ` (${what}, ${n})`;
  return `${cut(name, longestName - Buffer.byteLength(mark))}${mark}`;
}

/** A tenant that is called like its database stays so, where no other has that name. Two may change names with each other. */
function namesOf(tenants: readonly KnownTenant[], which: ReadonlyMap<string, Database>): Map<string, string> {
  const wishes = new Map<string, string>();
  for (const { id, name, database } of tenants) {
    const to = which.get(id)?.name ?? database;
    if (name === database && name !== defaultTenant && to !== name) wishes.set(id, to);
  }
  const kept = new Set(tenants.filter(({ id }) => !wishes.has(id)).map(({ name }) => name));
  // who has to keep its name keeps another from having it
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
      const name = unlike(names, database, (n) => (n === 1 ? `${database}-${oid}` : `${database}-${oid}-${n}`));
      names.add(name);
      return { id: newId(), name, database, oid };
    });
}

export function isNothing({ found, seen, renamed, gone }: Discovered): boolean {
  return found.length + seen.length + renamed.length + gone.length === 0;
}

/**
 * In a transaction of the launcher's. Whoever was faster wins: a tenant that was made, renamed or dropped by hand since it was
 * read is left as it is, and nothing is said of it.
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
      .map(({ id, from, name, database }) => draft('tenant.renamed', id, renaming(from, { name, database }))),
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

/** What is told of a tenant that is called otherwise, or whose database is, by a command or by plain SQL. */
export function renaming(from: Called, { name, database }: Called): EventDraft['body'] {
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
 * In two steps: two databases may have changed names with each other. What they are called in between is longer than any
 * database's name can be.
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
