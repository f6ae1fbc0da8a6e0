/**
 * Who is in the way: whose transactions keep a tenant's database from being looked at, or a migration from its tables, and
 * how they are ended.
 */
import { type Db, sql } from '../kernel/sql.ts';
import { isEngines } from '../postgres/drained.ts';
import { locks } from '../postgres/locks.ts';
import { reasons } from './reasons.ts';

const named = reasons.waitingOn('').text;

/** A transaction that holds locks. */
export type Holder = {
  /** Its number, or what it is called as long as it has none. */
  transaction: string;
  /** Null: a prepared transaction. */
  pid: number | null;
  gid: string | null;
  application: string | null;
  user: string | null;
  since: Date | null;
};

export type Blocker = Holder & {
  /**
   * A migration, a command on the database itself (drop, rename, template), another that has locked its tables, or one
   * that holds what the migration waits for.
   */
  what: 'migration' | 'database' | 'tables' | 'holder';
};

/** Of a row `lock` of `pg_locks`, with `whose`. */
const holder = sql`
  coalesce(own.xid::text, lock.virtualtransaction) as transaction, lock.pid, prepared.gid,
  coalesce(nullif(activity.application_name, ''), nullif(activity.backend_type, 'client backend')) as application,
  coalesce(activity.usename, prepared.owner) as user, coalesce(activity.xact_start, prepared.prepared) as since`;

const whose = sql`
  left join pg_stat_activity activity on activity.pid = lock.pid
  left join lateral (
    -- a prepared transaction keeps the virtual number of the session that was in it; of savepoints the outermost is meant
    select x.transactionid as xid
      from pg_locks x
     where x.locktype = 'transactionid' and x.mode = 'ExclusiveLock' and x.granted
       and x.virtualtransaction = lock.virtualtransaction and x.pid is not distinct from lock.pid
     order by age(x.transactionid) desc
     limit 1
  ) own on true
  left join pg_prepared_xacts prepared on lock.pid is null and prepared.transaction = own.xid`;

/**
 * Whose transactions keep a tenant from being looked at, on the control database's own server. Of those that have locked
 * tables, which may be nobody's business, the one that the launcher has named.
 */
export async function blockersOf(db: Db, tenantId: string): Promise<Blocker[]> {
  const blockers = await db.rows<Blocker>(sql`
    select distinct case lock.locktype when 'advisory' then 'migration' when 'object' then 'database' else 'tables' end as what,
           ${holder}
      from tenant
      left join launch on launch.tenant_id = tenant.id
      join pg_locks lock on (
             lock.locktype = 'advisory' and lock.database = tenant.database_oid and lock.mode = 'ExclusiveLock'
             and lock.classid = ${locks.drain[0]}::integer::oid and lock.objid = ${locks.drain[1]}::integer::oid
             and lock.objsubid = 2
           ) or (
             lock.locktype = 'object' and lock.classid = 'pg_database'::regclass and lock.objid = tenant.database_oid
             and lock.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
           ) or (
             lock.locktype = 'relation' and lock.database = tenant.database_oid and lock.mode = 'AccessExclusiveLock'
             and lock.granted
           )
      ${whose}
     where tenant.id = ${tenantId}
       and (lock.locktype <> 'relation'
            or launch.reason = ${named} || lock.virtualtransaction || ' (pid ' || lock.pid || ')'
            -- locks know 32 bits of a number
            or mod(substring(launch.reason from '([0-9]+)( \\(prepared\\))?$')::numeric, 4294967296)::text = own.xid::text)
     order by since`);
  const migrating = blockers.find(({ what, pid }) => what === 'migration' && pid !== null);
  return migrating === undefined ? blockers : [...blockers, ...(await awaitedBy(db, migrating.pid))];
}

/** Whose locks on tables or rows a backend waits for; engines, which it waits for first, leave by themselves or are ended. */
function awaitedBy(db: Db, pid: number | null): Promise<Blocker[]> {
  return db.rows<Blocker>(sql`
    select distinct 'holder' as what, ${holder}
      from pg_locks waiting
      join pg_locks lock on lock.granted and lock.locktype = waiting.locktype
           and lock.database is not distinct from waiting.database
           and lock.relation is not distinct from waiting.relation
           and lock.transactionid is not distinct from waiting.transactionid
           -- a prepared transaction is told of as 0
           and coalesce(lock.pid, 0) = any(pg_blocking_pids(waiting.pid))
      ${whose}
     where waiting.pid = ${pid}::integer and not waiting.granted and waiting.locktype <> 'advisory'
     order by since`);
}

/**
 * Transactions that keep statements of these connections to the tenant's own database waiting. A transaction that waits
 * itself is passed over for those that it waits for.
 */
export function holdersBlocking(db: Db, application: string): Promise<Holder[]> {
  return db.rows<Holder>(sql`
    with recursive blocked (pid) as (
      select pid
        from pg_stat_activity
       where application_name = ${application} and datname = current_database() and wait_event_type = 'Lock'
       union
      select blocker
        from blocked
       cross join unnest(pg_blocking_pids(blocked.pid)) blocker
    )
    select distinct ${holder}
      from blocked
      join pg_locks waiting on waiting.pid = blocked.pid and not waiting.granted
      join pg_locks lock on lock.granted and lock.locktype = waiting.locktype
           and lock.database is not distinct from waiting.database
           and lock.relation is not distinct from waiting.relation
           and lock.transactionid is not distinct from waiting.transactionid
           and lock.classid is not distinct from waiting.classid
           and lock.objid is not distinct from waiting.objid
           -- a prepared transaction is told of as 0
           and coalesce(lock.pid, 0) = any(pg_blocking_pids(waiting.pid))
      ${whose}
     where activity.application_name is distinct from ${application}
       and coalesce(cardinality(pg_blocking_pids(lock.pid)), 0) = 0
     order by since`);
}

/**
 * Transactions of others than engines that are as old at least and have a lock on a table of ours, in the tenant's own
 * database. A younger one stood in line behind a migration that waited for it, and has its lock only now.
 */
export function holdersOfTables(db: Db, forMs: number): Promise<Holder[]> {
  return db.rows<Holder>(sql`
    select distinct ${holder}
      from pg_locks lock
      join pg_class c on c.oid = lock.relation and c.relnamespace = to_regnamespace('millrace')
      ${whose}
     where lock.locktype = 'relation' and lock.granted and lock.pid is distinct from pg_backend_pid()
       and lock.database = (select oid from pg_database where datname = current_database())
       and activity.leader_pid is null
       and not exists (select from pg_locks l where ${isEngines} and l.pid = lock.pid)
       and coalesce(activity.xact_start, '-infinity') < clock_timestamp() - ${forMs} * interval '1 millisecond'
     order by since`);
}

const doings: Readonly<Record<Blocker['what'], string>> = {
  migration: 'a migration',
  database: 'a command on the database itself',
  tables: 'which has locked its tables',
  holder: 'whose locks the migration waits for',
};

export function described({ what, pid, gid, application, since }: Blocker): string {
  const who =
    pid === null
      ? `prepared as ${gid ?? 'unknown'}`
      : `backend ${pid}${application === null ? '' : `, ${application}`}`;
  return `${doings[what]}, ${who}${since === null ? '' : `, since ${since.toISOString()}`}`;
}

export function howToEnd({ pid, gid }: Blocker): string {
  return pid === null ? preparedEnd(gid) : `commit it or roll it back; ${asRollback(pid)}`;
}

/** What a command of ours has begun ends by itself: to end it is a second thought, unless it waits for others. */
export function howToWait(pid: number | null, blockers: readonly Blocker[] = []): string {
  const holders = blockers.filter(({ what }) => what === 'holder');
  if (holders.length > 0)
    return `it waits for locks of ${holders.map(inWords).join(', ')}, and gives up if they do not come: wait, or ${howToFree(holders)}`;
  return `wait for its end${pid === null ? '' : `; if that must not be, ${asRollback(pid)}`}`;
}

function asRollback(pid: number): string {
  return `select pg_terminate_backend(${pid}) ends it as a rollback`;
}

/** Who it is, for whoever is to talk to them. */
export function inWords({ pid, gid, application, user, since }: Holder): string {
  const who = pid === null ? `prepared transaction ${literal(gid)}` : `backend ${pid}`;
  const about = [
    ...(application === null ? [] : [application]),
    ...(user === null ? [] : [`role ${user}`]),
    ...(since === null ? [] : [`in a transaction since ${since.toISOString()}`]),
  ];
  return about.length === 0 ? who : `${who} (${about.join(', ')})`;
}

/** How each of them is ended, by SQL. */
export function howToFree(holders: readonly Holder[]): string {
  const statements = holders.map(({ pid, gid }) =>
    pid === null ? preparedEnd(gid) : `select pg_terminate_backend(${pid})`,
  );
  return `end ${holders.length === 1 ? 'it' : 'them'} (${statements.join('; ')})`;
}

function preparedEnd(gid: string | null): string {
  return `commit prepared ${literal(gid)}, or rollback prepared ${literal(gid)}`;
}

function literal(gid: string | null): string {
  return `'${(gid ?? '').replaceAll("'", "''")}'`;
}
