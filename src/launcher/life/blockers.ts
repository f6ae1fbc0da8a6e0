/** Who is in the way: whose transactions keep a tenant's database from being looked at, and how they are ended. */
import { type Db, sql } from '../../kernel/sql.ts';
import { locks } from '../../postgres/locks.ts';
import { reasons } from '../reasons.ts';

const named = reasons.waitingOn('').text;

export type Blocker = {
  /** A migration, a command on the database itself (drop, rename, template), or another that has locked its tables. */
  what: 'migration' | 'database' | 'tables';
  /** Its transaction's number, or what it is called as long as it has none. */
  transaction: string;
  /** Null: a prepared transaction. */
  pid: number | null;
  gid: string | null;
  application: string | null;
  user: string | null;
  since: Date | null;
};

/**
 * Whose transactions keep a tenant from being looked at, on the control database's own server. Of those that have locked
 * tables, which may be nobody's business, the one that the launcher has named.
 */
export function blockersOf(db: Db, tenantId: string): Promise<Blocker[]> {
  return db.rows<Blocker>(sql`
    select distinct case lock.locktype when 'advisory' then 'migration' when 'object' then 'database' else 'tables' end as what,
           coalesce(own.xid::text, lock.virtualtransaction) as transaction, lock.pid, prepared.gid, nullif(activity.application_name, '') as application,
           coalesce(activity.usename, prepared.owner) as user, coalesce(activity.xact_start, prepared.prepared) as since
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
      left join pg_prepared_xacts prepared on lock.pid is null and prepared.transaction = own.xid
     where tenant.id = ${tenantId}
       and (lock.locktype <> 'relation'
            or launch.reason = ${named} || lock.virtualtransaction || ' (pid ' || lock.pid || ')'
            -- locks know 32 bits of a number
            or mod(substring(launch.reason from '([0-9]+)( \\(prepared\\))?$')::numeric, 4294967296)::text = own.xid::text)
     order by since`);
}

const doings: Readonly<Record<Blocker['what'], string>> = {
  migration: 'a migration',
  database: 'a command on the database itself',
  tables: 'which has locked its tables',
};

export function described({ what, pid, gid, application, since }: Blocker): string {
  const who =
    pid === null
      ? `prepared as ${gid ?? 'unknown'}`
      : `backend ${pid}${application === null ? '' : `, ${application}`}`;
  return `${doings[what]}, ${who}${since === null ? '' : `, since ${since.toISOString()}`}`;
}

export function howToEnd({ pid, gid }: Blocker): string {
  if (pid === null) {
    const quoted = `'${(gid ?? '').replaceAll("'", "''")}'`;
    return `commit prepared ${quoted}, or rollback prepared ${quoted}`;
  }
  return `commit it or roll it back; ${asRollback(pid)}`;
}

/** What a command of ours has begun ends by itself: to end it is a second thought. */
export function howToWait(pid: number | null): string {
  return `wait for its end${pid === null ? '' : `; if that must not be, ${asRollback(pid)}`}`;
}

function asRollback(pid: number): string {
  return `select pg_terminate_backend(${pid}) ends it as a rollback`;
}
