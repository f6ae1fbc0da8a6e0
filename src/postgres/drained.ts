/**
 * A transaction in which no engine touches the tenant (I6). It holds `drain` exclusively: the grant proves that no process has a
 * connection of an engine left. An engine that connects meanwhile waits for the end of the transaction, and then reads the
 * recorded version.
 *
 * The caller's message and hint ask the holders of `drain` to leave. Connections that remain after a grace period are
 * terminated.
 */
import type { Client, ClientBase } from 'pg';
import { isLockTimeout, MillraceError } from '../errors.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { locks } from './locks.ts';

export interface Drained {
  /** The transaction, as the whole server knows it, and its backend. */
  readonly xid: string;
  readonly pid: number;
}

export interface DrainOptions {
  /** Called before the lock is requested. It must ask all processes to leave. */
  readonly onBegin: (who: Drained) => Promise<void>;
  /**
   * Called repeatedly while the transaction waits for the lock. It asks processes to leave that connected again before the lock
   * was requested. Later ones wait behind it.
   */
  readonly remind?: () => void;
  /** The time that holders have to leave. */
  readonly graceMs: number;
  /** The longest wait for each further lock: that of another migration, and locks on tables. */
  readonly lockMs?: number | undefined;
}

const firstReminderMs = 20;
const reminderMs = 500;

export const graceMs = 5_000;
/** The tenant is down meanwhile, so a session that holds tables for longer is reported and not waited for. */
export const usualLockMs = 30_000;
/** Connections that remain after this many grace periods cannot be terminated by us. */
const maxGraces = 5;

/** The client is connected to the tenant's database, has no open transaction, and is not shared. */
export function drained<T>(
  client: Client,
  options: DrainOptions,
  work: (client: ClientBase, tx: Db) => Promise<T>,
): Promise<T> {
  const { lockMs = usualLockMs } = options;
  return onClient(client).transaction(async (tx) => {
    const who = await tx.one<{ xid: string; pid: number }>(sql`
      select pg_current_xact_id()::text as xid, pg_backend_pid() as pid`);
    await options.onBegin(who);
    await limitWaits(tx, lockMs);
    await lockMigrate(tx);
    await limitWaits(tx, options.graceMs);
    await lockDrain(tx, options);
    await limitWaits(tx, lockMs);
    return work(client, tx);
  });
}

async function limitWaits(tx: Db, ms: number): Promise<void> {
  await tx.exec(sql`select set_config('lock_timeout', ${`${ms}ms`}, true)`);
}

async function lockMigrate(tx: Db): Promise<void> {
  try {
    await tx.exec(sql`select pg_advisory_xact_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`);
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    const detail = 'another migration of this database is under way and does not end; nothing was changed';
    throw new MillraceError('conflict', `${detail}; try again later`, { cause: error });
  }
}

async function lockDrain(tx: Db, options: DrainOptions): Promise<void> {
  for (let graces = 1; ; graces++) {
    try {
      // in a savepoint: a wait that ran out must not end the transaction
      await tx.transaction((inner) =>
        reminding(
          options.remind,
          inner.exec(sql`select pg_advisory_xact_lock(${locks.drain[0]}::integer, ${locks.drain[1]}::integer)`),
        ),
      );
      break;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      const holders = await terminateHolders(tx);
      if (graces === maxGraces) throw stuck(holders, error);
    }
  }
}

async function reminding<T>(remind: (() => void) | undefined, waiting: Promise<T>): Promise<T> {
  let timer = setTimeout(again, firstReminderMs);
  function again(): void {
    remind?.();
    timer = setTimeout(again, reminderMs);
  }
  return waiting.finally(() => clearTimeout(timer));
}

function stuck({ ended, left }: Terminated, cause: unknown): MillraceError {
  const ours = ended.length === 0 ? [] : [`backends ${ended.join(', ')}`];
  const others = left.length === 0 ? [] : [`of another role, which ours may not end: backends ${left.join(', ')}`];
  const who = [...ours, ...others].join('; ');
  const detail = `connections of engines do not leave${who === '' ? '' : ` (${who})`}; nothing was changed`;
  return new MillraceError('tenant_unavailable', detail, { cause });
}

/** Connections of engines, by their backends. */
export interface Terminated {
  readonly ended: readonly number[];
  /** Those of another role, which our role may not end. */
  readonly left: readonly number[];
}

/** Whether a row `l` of `pg_locks` belongs to a connection of an engine, in any database, other than this session. */
export const isEngines = sql`
  l.locktype = 'advisory' and l.classid = ${locks.drain[0]}::integer::oid and l.objid = ${locks.drain[1]}::integer::oid
  and l.objsubid = 2 and l.mode = 'ShareLock' and l.granted and l.pid <> pg_backend_pid()`;

/** Ends every connection of an engine to these databases. Default: to the current one. */
export async function terminateHolders(
  db: Db,
  of?: { name: string } | { oids: readonly number[] },
): Promise<Terminated> {
  const database =
    of !== undefined && 'oids' in of
      ? sql`= any(${of.oids}::oid[])`
      : sql`= (select oid from pg_database where datname = coalesce(${of?.name ?? null}, current_database()))`;
  const rows = await db.rows<{ pid: number; ended: boolean }>(sql`
    select l.pid, ${terminated} as ended
      from pg_locks l
      join pg_stat_activity a on a.pid = l.pid
     where ${isEngines} and l.database ${database}`);
  return terminatedOf(rows);
}

/** Whether our role may end the backend `a` of `pg_stat_activity`. */
export const mayEnd = sql`
  (pg_has_role(a.usesysid, 'usage')
   or (pg_has_role('pg_signal_backend', 'usage')
       and not (select rolsuper from pg_roles where pg_roles.oid = a.usesysid)))`;

/** Ends the backend `a` of `pg_stat_activity` and returns true. Returns false if our role may not end it, which would raise an error. */
export const terminated = sql`
  case when ${mayEnd} then pg_terminate_backend(a.pid) is not null else false end`;

export function terminatedOf(rows: readonly { readonly pid: number; readonly ended: boolean }[]): Terminated {
  const pids = (ended: boolean): number[] => rows.filter((row) => row.ended === ended).map(({ pid }) => pid);
  return { ended: pids(true), left: pids(false) };
}
