/**
 * Finds sessions that are about to change a tenant's database without a message to the launcher. `pg_locks` covers the whole
 * server, so one statement shows the sessions that hold or request `drain` exclusively (a migration by any tool), those that
 * hold a database itself (DROP, RENAME, TEMPLATE, TABLESPACE; PostgreSQL waits five seconds for other sessions to leave), and
 * those that have locked tables without either.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { isEngines } from '../../postgres/drained.ts';
import { locks } from '../../postgres/locks.ts';

export interface Sighting {
  readonly databaseOid: number;
  /** `drain`: a migration. `database`: a command that tolerates no session in it. `tables`: any other transaction. */
  readonly what: 'drain' | 'database' | 'tables';
  /** Null: a prepared transaction, which no backend runs. */
  readonly pid: number | null;
  /** Distinguishes successive transactions of the same backend. */
  readonly virtualTransaction: string;
  /** Null: no id has been assigned yet. */
  readonly xid: string | null;
  readonly granted: boolean;
  /** For `tables`: a connection of an engine waits for one of them. */
  readonly inTheWay: boolean;
}

/** Lock modes that are not taken by merely opening a connection. */
const strong = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'];

export function readSightings(db: Db): Promise<Sighting[]> {
  return db.rows<Sighting>(sql`
    with held as materialized (
      select locktype, database, relation, classid, objid, objsubid, transactionid, virtualtransaction, pid, mode, granted
        from pg_locks
       where locktype in ('advisory', 'object', 'transactionid')
          or (locktype = 'relation' and (not granted or mode = 'AccessExclusiveLock'))
    ), engine as (
      select l.pid from held l where ${isEngines}
    ), awaited as (
      select distinct database, relation from held join engine using (pid) where locktype = 'relation' and not granted
    ), seen as (
      select case locktype when 'advisory' then database else objid end as oid,
             case locktype when 'advisory' then 'drain' else 'database' end as what,
             pid, virtualtransaction, granted, true as in_the_way
        from held
       where (locktype = 'advisory' and mode = 'ExclusiveLock' and objsubid = 2
              and classid = ${locks.drain[0]}::integer::oid and objid = ${locks.drain[1]}::integer::oid)
          or (locktype = 'object' and classid = 'pg_database'::regclass and mode = any(${strong}::text[]))
       union all
      -- locks of engines are left out: they are short
      select database, 'tables', pid, virtualtransaction, true, bool_or(awaited.relation is not null)
        from held
        left join awaited using (database, relation)
       where locktype = 'relation' and granted and not exists (select from engine where engine.pid = held.pid)
       group by database, pid, virtualtransaction
    )
    select oid as "databaseOid", what, pid, virtualtransaction as "virtualTransaction", granted, in_the_way as "inTheWay", own.xid
      from seen
      left join lateral (
        -- pg_locks shows 32 bits; the rest follows from the next transaction id. Of savepoints, take the outermost
        select min(case when at < next then at else at - 4294967296 end)::text as xid
          from (select (next / 4294967296) * 4294967296 + x.transactionid::text::bigint as at, next
                  from held x
                 cross join (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000 as next) latest
                 where x.locktype = 'transactionid' and x.mode = 'ExclusiveLock' and x.granted
                   and x.virtualtransaction = seen.virtualtransaction) whole
      ) own on true
     -- the last one is named: a holder comes after those that wait for it
     order by oid, what <> 'tables', what, granted, virtualtransaction`);
}

/** A transaction that has locked tables counts after this time; most end sooner. */
const patienceMs = 2_000;

/** Follows sightings over successive polls: since when each has been seen, and which of them count. */
export class Watch {
  readonly #since = new Map<string, number>();
  /** Transactions that an engine has ever waited for. They still count when no engine waits, because the lock remains. */
  readonly #inTheWay = new Set<string>();
  #current: readonly Sighting[] = [];

  get current(): readonly Sighting[] {
    return this.#current;
  }

  /** Returns whether the counting sightings have changed. `nowMs`: of a monotonic clock. */
  note(sightings: readonly Sighting[], nowMs: number): boolean {
    const keys = new Set(sightings.map(keyOf));
    for (const memory of [this.#since, this.#inTheWay])
      for (const key of memory.keys()) if (!keys.has(key)) memory.delete(key);
    for (const key of keys) if (!this.#since.has(key)) this.#since.set(key, nowMs);
    for (const sighting of sightings) if (sighting.inTheWay) this.#inTheWay.add(keyOf(sighting));
    const before = new Set(this.#current.map(keyOf));
    this.#current = sightings.filter((sighting) => this.#counts(sighting, nowMs));
    const after = new Set(this.#current.map(keyOf));
    return after.size !== before.size || [...after].some((key) => !before.has(key));
  }

  #counts(sighting: Sighting, nowMs: number): boolean {
    const key = keyOf(sighting);
    if (sighting.what !== 'tables') return true;
    return this.#inTheWay.has(key) && nowMs - (this.#since.get(key) ?? nowMs) >= patienceMs;
  }

  /** Databases for which `drain` has not been granted, or a command has been waiting, for at least `afterMs`. */
  overdue(nowMs: number, afterMs: Readonly<Record<'drain' | 'database', number>>): number[] {
    const late = this.#current.filter(
      (sighting) =>
        sighting.what !== 'tables' &&
        (sighting.what === 'database' || !sighting.granted) &&
        nowMs - (this.#since.get(keyOf(sighting)) ?? nowMs) >= afterMs[sighting.what],
    );
    return [...new Set(late.map((sighting) => sighting.databaseOid))];
  }

  forget(): void {
    this.#since.clear();
    this.#inTheWay.clear();
    this.#current = [];
  }
}

/** Identifies the transaction, whether or not its lock has been granted. */
export function keyOf({ databaseOid, what, pid, virtualTransaction }: Sighting): string {
  return `${databaseOid} ${what} ${pid ?? ''} ${virtualTransaction}`;
}
