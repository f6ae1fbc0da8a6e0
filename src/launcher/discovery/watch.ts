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
  /** Tells one transaction from the next of the same backend. */
  readonly virtualTransaction: string;
  /** Null: it has none yet. */
  readonly xid: string | null;
  readonly granted: boolean;
  /** Of `tables`: a connection of an engine waits for one of them. */
  readonly inTheWay: boolean;
}

/** Modes that no connection takes by being opened. */
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
      -- an engine's own are over soon
      select database, 'tables', pid, virtualtransaction, true, bool_or(awaited.relation is not null)
        from held
        left join awaited using (database, relation)
       where locktype = 'relation' and granted and not exists (select from engine where engine.pid = held.pid)
       group by database, pid, virtualtransaction
    )
    select oid as "databaseOid", what, pid, virtualtransaction as "virtualTransaction", granted, in_the_way as "inTheWay", own.xid
      from seen
      left join lateral (
        -- 32 bits of it are known; the rest follows from the next one's. Of savepoints the outermost is meant
        select min(case when at < next then at else at - 4294967296 end)::text as xid
          from (select (next / 4294967296) * 4294967296 + x.transactionid::text::bigint as at, next
                  from held x
                 cross join (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000 as next) latest
                 where x.locktype = 'transactionid' and x.mode = 'ExclusiveLock' and x.granted
                   and x.virtualtransaction = seen.virtualtransaction) whole
      ) own on true
     -- of several the last is named: one that holds comes after those who wait for it
     order by oid, what <> 'tables', what, granted, virtualtransaction`);
}

/** Whoever has locked tables for less is as good as done. */
const patienceMs = 2_000;

/** One look after the other, and since when each thing has been in sight. */
export class Watch {
  readonly #since = new Map<string, number>();
  /** Who was ever seen in the way: that others have gone away from a locked table does not unlock it. */
  readonly #inTheWay = new Set<string>();
  #current: readonly Sighting[] = [];

  get current(): readonly Sighting[] {
    return this.#current;
  }

  /** Whether anything has come or gone. `nowMs` is of a clock that only runs. */
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

  /** Databases for whose sake somebody has been waiting for so long: `drain` was not granted, or the command goes on. */
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

/** The same transaction, whether or not it has been granted its lock. */
export function keyOf({ databaseOid, what, pid, virtualTransaction }: Sighting): string {
  return `${databaseOid} ${what} ${pid ?? ''} ${virtualTransaction}`;
}
