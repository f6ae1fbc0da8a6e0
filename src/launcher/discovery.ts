/**
 * Tenants and the databases of the server, brought together: new databases become tenants where the installation discovers,
 * renamed ones are followed by their oid, and tenants whose database is gone go with it. What is to be done is worked out
 * by a pure function; it is written with its events in one transaction.
 */
import { append, type EventDraft } from '../events/append.ts';
import { newId } from '../kernel/id.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { Presence } from './supervisor.ts';

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
  readonly seen: readonly { readonly id: string; readonly oid: number; readonly anew: boolean }[];
  readonly renamed: readonly {
    readonly id: string;
    readonly from: { readonly name: string; readonly database: string };
    readonly name: string;
    readonly database: string;
  }[];
  readonly gone: readonly { readonly id: string; readonly name: string; readonly database: string }[];
}

const tenantTopic = 1;
/** The one tenant that is there even without its database. */
const permanent = 'default';

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
  const byName = new Map(databases.map((database) => [database.name, database]));
  return new Map(tenants.map((tenant) => [tenant.id, presenceOf(tenant, byName.get(tenant.database))]));
}

function presenceOf({ elsewhere }: KnownTenant, database: Database | undefined): Presence {
  if (elsewhere) return 'unlisted';
  if (database === undefined) return 'gone';
  if (database.template) return 'template';
  return database.connectable ? 'there' : 'refusing';
}

export function discover(
  tenants: readonly KnownTenant[],
  databases: readonly Database[],
  rules: DiscoveryRules,
): Discovered {
  const here = tenants.filter((tenant) => !tenant.elsewhere);
  const byOid = new Map(databases.map((database) => [database.oid, database]));
  const byName = new Map(databases.map((database) => [database.name, database]));
  const claimed = new Set(
    here.flatMap(({ databaseOid }) => (databaseOid !== null && byOid.has(databaseOid) ? databaseOid : [])),
  );
  const seen: Discovered['seen'][number][] = [];
  const renamed: Discovered['renamed'][number][] = [];
  const gone: Discovered['gone'][number][] = [];
  const names = new Set(tenants.map(({ name }) => name));
  for (const tenant of here) {
    const { id, name, database, databaseOid } = tenant;
    const same = databaseOid === null ? undefined : byOid.get(databaseOid);
    const namesake = byName.get(database);
    if (same !== undefined) {
      if (same.name === database) continue;
      const to = name === database && !names.has(same.name) ? same.name : name;
      names.add(to);
      renamed.push({ id, from: { name, database }, name: to, database: same.name });
    } else if (namesake !== undefined && !claimed.has(namesake.oid)) {
      claimed.add(namesake.oid);
      seen.push({ id, oid: namesake.oid, anew: databaseOid !== null });
    } else if (isForgotten(tenant, rules)) gone.push({ id, name, database });
  }
  const found = rules.discover === 'all' ? findNew(databases, { claimed, names, tenants, rules }) : [];
  return { found, seen, renamed, gone };
}

function isForgotten({ name, databaseOid, discovered }: KnownTenant, rules: DiscoveryRules): boolean {
  // one that was never seen may be about to be made
  return name !== permanent && databaseOid !== null && (discovered || rules.discover === 'all');
}

interface Taken {
  readonly claimed: ReadonlySet<number>;
  readonly names: ReadonlySet<string>;
  readonly tenants: readonly KnownTenant[];
  readonly rules: DiscoveryRules;
}

function findNew(
  databases: readonly Database[],
  { claimed, names, tenants, rules }: Taken,
): Discovered['found'][number][] {
  const registered = new Set(tenants.map(({ database }) => database));
  return databases
    .filter(({ oid, name, template, connectable }) => {
      const own = name === rules.controlDatabase || name === 'postgres';
      return connectable && !template && !own && !claimed.has(oid) && !registered.has(name);
    })
    .map(({ oid, name }) => ({ id: newId(), name: names.has(name) ? `${name}-${oid}` : name, database: name, oid }));
}

export function isNothing({ found, seen, renamed, gone }: Discovered): boolean {
  return found.length + seen.length + renamed.length + gone.length === 0;
}

/** In a transaction of the launcher's. Whoever was faster (a tenant made by hand meanwhile) wins. */
export async function writeDiscovered(tx: Db, { found, seen, renamed, gone }: Discovered, at: Date): Promise<void> {
  if (gone.length > 0) await tx.exec(sql`delete from tenant where id = any(${gone.map(({ id }) => id)}::uuid[])`);
  if (renamed.length > 0) await writeRenamed(tx, renamed);
  if (seen.length > 0)
    await tx.exec(sql`
      update tenant set database_oid = s.oid
        from unnest(${seen.map(({ id }) => id)}::uuid[], ${seen.map(({ oid }) => oid)}::oid[]) as s (id, oid)
       where tenant.id = s.id`);
  const made = found.length > 0 ? await writeFound(tx, found, at) : new Set<string>();
  const drafts: EventDraft[] = [
    ...gone.map(({ id, name, database }) => draft('tenant.gone', id, { name, database })),
    ...renamed.map(({ id, from, name, database }) => draft('tenant.renamed', id, { from, name, database })),
    ...found
      .filter(({ id }) => made.has(id))
      .map(({ id, name, database }) => draft('tenant.discovered', id, { name, database })),
  ];
  if (drafts.length > 0) await append(tx, tenantTopic, drafts, { actor: 'installation', at });
}

function draft(type: string, subject: string, body: EventDraft['body']): EventDraft {
  return { type, subject, body };
}

/** In two steps: two databases may have changed names with each other. */
async function writeRenamed(tx: Db, renamed: Discovered['renamed']): Promise<void> {
  const ids = renamed.map(({ id }) => id);
  await tx.exec(sql`
    update tenant set database = id::text, name = case when name = database then id::text else name end
     where id = any(${ids}::uuid[])`);
  await tx.exec(sql`
    update tenant set database = r.database, name = r.name
      from unnest(${ids}::uuid[], ${renamed.map(({ database }) => database)}::text[], ${renamed.map(({ name }) => name)}::text[])
        as r (id, database, name)
     where tenant.id = r.id`);
}

async function writeFound(tx: Db, found: Discovered['found'], at: Date): Promise<Set<string>> {
  const rows = await tx.rows<{ id: string }>(sql`
    insert into tenant (id, name, database, database_oid, discovered, created_at)
    select f.id, f.name, f.database, f.oid, true, ${at}
      from unnest(${found.map(({ id }) => id)}::uuid[], ${found.map(({ name }) => name)}::text[],
                  ${found.map(({ database }) => database)}::text[], ${found.map(({ oid }) => oid)}::oid[])
        as f (id, name, database, oid)
    on conflict do nothing
    returning id`);
  return new Set(rows.map(({ id }) => id));
}
