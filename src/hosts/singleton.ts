/**
 * The connection by which a host holds a tenant: it checks the version, and holds `drain` shared (I6) and `singleton` (I5).
 * While it is open, no other scheduler runs for the tenant and no migration begins; once it is lost, both can happen.
 */
import type { Client, ClientBase } from 'pg';
import { isConnectionLoss, isLockTimeout, isMissingRight, isMissingTable, sqlStateOf } from '../errors.ts';
import { pause } from '../kernel/service.ts';
import { onClient, sql } from '../kernel/sql.ts';
import type { Address } from '../postgres/address.ts';
import { openClient, sever } from '../postgres/pool/client.ts';
import { locks } from '../postgres/locks.ts';
import { guardVersion, VersionMismatch } from '../postgres/pool/pool.ts';
import { formatCause } from '../control/format-reason.ts';
import { boundText, type Reason, type ReasonCode, reasons } from '../control/reasons.ts';

/** Why a scheduler has ended or did not start. The launcher decides what follows. */
export class Ending extends Error {
  override readonly name = 'Ending';
  readonly reason: Reason;
  readonly code: ReasonCode;

  constructor(reason: Reason) {
    super(formatCause(reason));
    this.reason = reason;
    this.code = reason.code;
  }
}

export function stopped(): Ending {
  return new Ending(reasons.toldToEnd);
}

export interface Holding {
  readonly address: Address;
  readonly application: string;
  readonly version: string;
  readonly allowPooler: boolean;
  /** Whether connections of this name belong to a host that was written off. Such connections are ended if they linger. */
  readonly isWrittenOff?: (application: string) => Promise<boolean>;
}

const connectMs = 5_000;
const tryEveryMs = 100;

/** Makes a backend end within about a second after its connection is cut, even in the middle of a statement. */
const checkInterval = `
  do $$ begin
    perform set_config('client_connection_check_interval', '1s', false);
  exception when others then null; -- the server's system cannot tell
  end $$`;

/** Runs first on every connection of a scheduler. It fails during a long migration: waiting is up to the launcher. */
export function guardFor(version: string): (client: ClientBase) => Promise<void> {
  const guard = guardVersion(version);
  return async (client) => {
    await client.query(checkInterval);
    await guard(client);
  };
}

/** Rejects with an `Ending`. When the signal aborts, it may reject with any error. */
export async function holdTenant(
  { address, application, version, allowPooler, isWrittenOff = async () => false }: Holding,
  waitMs: number,
  onWait: (reason: Reason) => void,
  signal: AbortSignal,
): Promise<Client> {
  const onOpen = guardFor(version);
  const options = { address, schema: 'millrace', application, allowPooler, connectMs, signal, onOpen } as const;
  const client = await openClient(options).catch((error: unknown) => {
    throw endingOf(error);
  });
  const giveUp = (): void => sever(client);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await takeSingleton(client, { waitMs, onWait, isWrittenOff }, signal);
    return client;
  } catch (error) {
    sever(client);
    throw endingOf(error);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

interface Taking {
  readonly waitMs: number;
  readonly onWait: (reason: Reason) => void;
  readonly isWrittenOff: (application: string) => Promise<boolean>;
}

/**
 * A predecessor has `waitMs` to end; if it does not, the tenant is reported as held by it. If the launcher has written the
 * predecessor off, its connections to the launcher's own server were ended then. Its connections to other servers are ended
 * here.
 */
async function takeSingleton(
  client: Client,
  { waitMs, onWait, isWrittenOff }: Taking,
  signal: AbortSignal,
): Promise<void> {
  let until = performance.now() + waitMs;
  let ended = false;
  for (let isReported = false; ; isReported = true) {
    signal.throwIfAborted();
    if (await tryLock(client)) return;
    if (!isReported) onWait(explainHolder(await findHolder(client)));
    if (performance.now() > until) {
      const holder = await findHolder(client);
      if (ended || !holder?.name || !(await isWrittenOff(holder.name))) throw new Ending(explainHolder(holder));
      await endConnections(client, holder.name);
      ended = true;
      until = performance.now() + waitMs;
    }
    await pause(tryEveryMs, signal);
  }
}

/** Ends all connections of that name, not only the one with the lock. We may end only those of our own role. */
async function endConnections(client: Client, application: string): Promise<void> {
  await onClient(client).exec(sql`
    select pg_terminate_backend(pid)
      from pg_stat_activity
     where application_name = ${application} and datname = current_database() and usename = current_user
       and pid <> pg_backend_pid()`);
}

async function tryLock(client: Client): Promise<boolean> {
  const { locked } = await onClient(client).one<{ locked: boolean }>(sql`
    select pg_try_advisory_lock(${locks.singleton[0]}::integer, ${locks.singleton[1]}::integer) as locked`);
  return locked;
}

interface Holder {
  readonly pid: number;
  readonly name: string | null;
}

async function findHolder(client: Client): Promise<Holder | undefined> {
  const [holder] = await onClient(client).rows<{ pid: number; name: string | null }>(sql`
    select l.pid, a.application_name as name
      from pg_locks l
      left join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.classid = ${locks.singleton[0]}::integer::oid and l.objsubid = 2
       and l.objid = ${locks.singleton[1]}::integer::oid and l.granted
       and l.database = (select oid from pg_database where datname = current_database())`);
  return holder;
}

function explainHolder({ name, pid }: Partial<Holder> = {}): Reason {
  return { code: 'starting', cause: 'other_scheduler', data: { name: name ?? null, pid: pid ?? null } };
}

/** An engine may throw anything, even a value that cannot be turned into a string. */
export function textOf(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? Reflect.get(error, 'message') : error;
    const cause: unknown = error instanceof Error ? error.cause : undefined;
    return cause instanceof Error ? `${String(message)}: ${textOf(cause)}` : String(message);
  } catch {
    return 'an error without a readable text';
  }
}

/** Turns an error of opening a tenant, or of its scheduler, into an ending with a reason. */
export function endingOf(error: unknown): Ending {
  return error instanceof Ending ? error : new Ending(explainError(error));
}

function explainError(error: unknown): Reason {
  const code = 'unreachable';
  const text = boundText(textOf(error));
  if (error instanceof VersionMismatch)
    return { code: 'starting', cause: 'other_version', data: { version: boundText(error.recorded) } };
  if (isLockTimeout(error) || (error instanceof Error && isLockTimeout(error.cause))) return reasons.beingChanged;
  if (sqlStateOf(error) === '3D000') return reasons.gone;
  if (isMissingTable(error)) return reasons.notInstalled;
  if (isConnectionLoss(error)) return { code, cause: 'connection_lost', data: { text } };
  return isMissingRight(error) ? { code, cause: 'missing_right', data: { text } } : reasons.error('crashed', text);
}
