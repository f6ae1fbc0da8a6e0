/**
 * Transactions that block a tenant: they keep its database from being inspected, or a migration from its tables. Also the
 * advice that tells users how to end them.
 */
import { type Db, sql } from '../kernel/sql.ts';
import { isEngines } from '../postgres/drained.ts';
import { locks } from '../postgres/locks.ts';
import { formatFreeing, formatHolder, formatPreparedEnd } from './format-reason.ts';
import type { LockHolder } from './reasons.ts';

/** A transaction that holds locks. */
export type Holder = {
  /** Its id, or its virtual id until it has one. */
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
   * A migration, a command on the database itself (drop, rename, template), a transaction that has locked the tenant's
   * tables, or one that holds locks that the migration waits for.
   */
  what: 'migration' | 'database' | 'tables' | 'holder';
};

/** Columns of a `Holder`, from a row `lock` of `pg_locks` and the joins of `whose`. */
const holder = sql`
  coalesce(own.xid::text, lock.virtualtransaction) as transaction, lock.pid, prepared.gid,
  coalesce(nullif(activity.application_name, ''), nullif(activity.backend_type, 'client backend')) as application,
  coalesce(activity.usename, prepared.owner) as user, coalesce(activity.xact_start, prepared.prepared) as since`;

const whose = sql`
  left join pg_stat_activity activity on activity.pid = lock.pid
  left join lateral (
    -- a prepared transaction keeps the virtual id of its session; of savepoints, take the outermost transaction
    select x.transactionid as xid
      from pg_locks x
     where x.locktype = 'transactionid' and x.mode = 'ExclusiveLock' and x.granted
       and x.virtualtransaction = lock.virtualtransaction and x.pid is not distinct from lock.pid
     order by age(x.transactionid) desc
     limit 1
  ) own on true
  left join pg_prepared_xacts prepared on lock.pid is null and prepared.transaction = own.xid`;

/**
 * Transactions that keep a tenant from being inspected, on the control database's own server. A transaction that has only
 * locked tables counts if the launcher's reason names it.
 */
export async function blockersOf(db: Db, tenantId: string): Promise<Blocker[]> {
  const blockers = await db.rows<Blocker>(sql`
    select distinct case lock.locktype when 'advisory' then 'migration' when 'object' then 'database' else 'tables' end as what,
           ${holder}
      from tenant
      left join launch on launch.tenant_id = tenant.id
      left join lateral (
        select why -> 'data' ->> 'xid' as xid, why -> 'data' ->> 'virtualTransaction' as virtual,
               why -> 'data' ->> 'pid' as pid
         where launch.code = 'waiting_on_transaction' and launch.why ->> 'text' = launch.reason
      ) named on true
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
            or (named.xid is null and named.virtual = lock.virtualtransaction and named.pid = lock.pid::text)
            -- pg_locks shows only the low 32 bits of a transaction id
            or case when named.xid ~ '^[0-9]{1,20}$' then mod(named.xid::numeric, 4294967296)::text = own.xid::text end)
     order by since`);
  const migrating = blockers.find(({ what, pid }) => what === 'migration' && pid !== null);
  return migrating === undefined ? blockers : [...blockers, ...(await awaitedBy(db, migrating.pid))];
}

/** Transactions whose locks on tables or rows a backend waits for. Engines are left out: they leave, or are ended. */
function awaitedBy(db: Db, pid: number | null): Promise<Blocker[]> {
  return db.rows<Blocker>(sql`
    select distinct 'holder' as what, ${holder}
      from pg_locks waiting
      join pg_locks lock on lock.granted and lock.locktype = waiting.locktype
           and lock.database is not distinct from waiting.database
           and lock.relation is not distinct from waiting.relation
           and lock.transactionid is not distinct from waiting.transactionid
           -- pg_blocking_pids shows a prepared transaction as 0
           and coalesce(lock.pid, 0) = any(pg_blocking_pids(waiting.pid))
      ${whose}
     where waiting.pid = ${pid}::integer and not waiting.granted and waiting.locktype <> 'advisory'
     order by since`);
}

/**
 * Transactions that block statements of these connections, in the tenant's own database. A blocking transaction that waits
 * itself is replaced by those that it waits for.
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
           -- pg_blocking_pids shows a prepared transaction as 0
           and coalesce(lock.pid, 0) = any(pg_blocking_pids(waiting.pid))
      ${whose}
     where activity.application_name is distinct from ${application}
       and coalesce(cardinality(pg_blocking_pids(lock.pid)), 0) = 0
     order by since`);
}

/**
 * Transactions older than `forMs` that have locked one of our tables, in the tenant's own database. Engines are left out, and
 * younger transactions too: they may have queued behind a migration and got their lock only now.
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

/** What a blocker does, as users see it. */
const doings: Readonly<Record<Blocker['what'], string>> = {
  migration: 'a migration',
  database: 'a command on the database itself',
  tables: 'which has locked its tables',
  holder: 'whose locks the migration waits for',
};

export function describeBlocker({ what, pid, gid, application, since }: Blocker): string {
  const who =
    pid === null
      ? `prepared as ${gid ?? 'unknown'}`
      : `backend ${pid}${application === null ? '' : `, ${application}`}`;
  return `${doings[what]}, ${who}${since === null ? '' : `, since ${since.toISOString()}`}`;
}

export function adviseEnding({ pid, gid }: Blocker): string {
  return pid === null ? formatPreparedEnd(gid) : `commit it or roll it back; ${formatRollback(pid)}`;
}

/** Advice for a transaction of one of our commands, which ends by itself. Ending it is the last resort. */
export function adviseWaiting(pid: number | null, blockers: readonly Blocker[] = []): string {
  const holders = blockers.filter(({ what }) => what === 'holder');
  if (holders.length > 0)
    return `it waits for locks of ${nameHolders(holders)}, and gives up if it does not get them: wait, or ${formatFreeing(holders)}`;
  return `wait for its end${pid === null ? '' : `; if that must not be, ${formatRollback(pid)}`}`;
}

function formatRollback(pid: number): string {
  return `select pg_terminate_backend(${pid}) ends it as a rollback`;
}

export function nameHolders(holders: readonly Holder[]): string {
  return holders.map((holder) => formatHolder(lockHolderOf(holder))).join(', ');
}

/** Converts a holder to the form that reasons store. */
export function lockHolderOf({ pid, gid, application, user, since }: Holder): LockHolder {
  return { pid, gid, application, user, since: since?.toISOString() ?? null };
}
