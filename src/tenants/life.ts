/**
 * Tenant life: creating, changing and removing tenants. Each step (create, adopt, upgrade, …) has a file of its own in this
 * folder; this file has what they share.
 *
 * 1. Every effect is one transaction, or can be repeated: calling a step again completes or undoes one that died half way.
 * 2. Steps for one tenant run one after the other, also across processes.
 */
import { everyone } from '../contract/channels.ts';
import { defaultTenant } from '../contract/tenants.ts';
import type { Client } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { isConnectionLoss, isInUse, isLockTimeout, MillraceError, sqlStateOf } from '../errors.ts';
import { append, tenantTopic } from '../events/append.ts';
import { checkpoint } from './checkpoints.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { type Address, isAddressable, onDatabase } from '../postgres/address.ts';
import { withClient } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import { notForgotten } from '../postgres/pool/pool.ts';
import type { SchemaSource } from '../postgres/schema-source.ts';
import type { DatabaseFault } from '../postgres/database-health.ts';
import type { WakeHub } from '../postgres/wake.ts';
import type { TenantRow } from '../control/queries.ts';
import type { Engines } from '../loader/engines/engines.ts';
import type { DrainHooks } from './drained-work.ts';
import {
  announce,
  awaitOutcome,
  hintChanged,
  type MessageKind,
  sendMessage,
  type SentMessage,
} from '../control/messages.ts';
import { describeHolders, findLifeRow, isLauncherActive, type LifeRow } from './queries.ts';

export interface Life {
  readonly control: Db;
  readonly controlAddress: Address;
  readonly hub: WakeHub;
  readonly time: Time;
  readonly engines: Pick<Engines, 'find' | 'list' | 'listTried'>;
  /** The migrations and functions of an installed engine. */
  readonly schemaOf: (version: string) => Promise<SchemaSource>;
  /** The running release. */
  readonly version: string;
  readonly addressOf: (row: TenantRow) => Address;
  /** Whether its database is on another server than the control database. */
  readonly isElsewhere: (row: TenantRow) => boolean;
  /** Whether databases of the server are tenants without being registered. */
  readonly discovers: boolean;
  /** Default of `max_background_workers`. */
  readonly slotLimit: number;
  /** The fault of the control database that this process observes; undefined: it answers and accepts writes. */
  readonly databaseFault: () => DatabaseFault | undefined;
  /** Describes the fault of the clock of the control database's server. */
  readonly clockFault?: () => string | undefined;
  /** How long a migration waits for table locks; default: `usualLockMs`. */
  readonly lockMs?: number;
}

/** The key or process that acts, for messages and events. */
export interface Actor {
  readonly actor: string;
}

export interface Ordered {
  readonly tenantId: string;
  readonly message: SentMessage;
}

/** How long a step waits for another step for the same tenant before it gives up. */
const maxWaitMs = 60_000;

/**
 * Runs one step at a time for each of these names, across all processes. The lock belongs to a connection to the control
 * database that the step has for itself: databases are created, renamed and dropped on it.
 */
export function exclusively<T>(life: Life, names: readonly string[], step: (client: Client) => Promise<T>): Promise<T> {
  return withClient(life.controlAddress, async (client) => {
    const db = onClient(client);
    await client.query(`set search_path to control; ${notForgotten('control')}`);
    await db.exec(sql`select set_config('lock_timeout', ${`${maxWaitMs}ms`}, false)`);
    try {
      // always in the same order, so that two renames in opposite directions cannot deadlock
      await db.exec(sql`
        select pg_advisory_lock(${locks.life}::integer, key)
          from (select distinct hashtext(name) as key from unnest(${names}::text[]) as name order by key) as keys`);
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      throw new MillraceError(
        'conflict',
        `another change of tenant ${names.join(' or ')} is under way; try again later`,
      );
    }
    await client.query('reset lock_timeout');
    return step(client);
  });
}

export async function requireTenant(life: Life, name: string): Promise<LifeRow> {
  const row = await findLifeRow(life.control, name);
  if (row === undefined) throw new MillraceError('not_found', `there is no tenant ${name}`);
  return row;
}

export function refuseDefault(name: string, what: string): void {
  if (name !== defaultTenant) return;
  throw new MillraceError('conflict', `the tenant ${defaultTenant} cannot be ${what}: an installation always has one`);
}

/** Adds which sessions are in the way, if PostgreSQL refused to drop or rename a database. Other errors stay as they are. */
export async function explainRefusal(
  client: Client,
  { database, what }: { readonly database: string; readonly what: 'dropped' | 'renamed' },
  error: unknown,
): Promise<unknown> {
  const isAnswer = error instanceof Error && !(error instanceof MillraceError) && sqlStateOf(error) !== undefined;
  if (!isAnswer || isConnectionLoss(error)) return error;
  const holders = isInUse(error) ? await describeHolders(onClient(client), database, what).catch(() => []) : [];
  const held = holders.length === 0 ? '' : `; it is held by ${holders.join(', ')}`;
  const detail = `the database ${database} was not ${what}: ${error.message}${held}`;
  return new MillraceError('conflict', detail, { cause: error });
}

const notForTenants = new Set(['postgres', 'template0', 'template1']);

export function refuseDatabase({ controlAddress }: Life, database: string, field: string): void {
  const reason = reservedBecause(database, controlAddress.database);
  if (reason === undefined) return;
  const message = `the database ${database} cannot be a tenant's: ${reason}; name another`;
  throw new MillraceError('bad_request', message, { faults: [{ path: field, message: reason }] });
}

function reservedBecause(database: string, control: string): string | undefined {
  if (database === control) return 'it is the control database';
  if (notForTenants.has(database)) return 'it belongs to PostgreSQL itself';
  if (Buffer.byteLength(database) > 63) return 'a name has at most 63 bytes in PostgreSQL';
  if (!isAddressable(database)) return 'its name cannot be written in a connection address';
  return undefined;
}

export async function engineFor(life: Life, version: string, field: string): Promise<Engine> {
  const found = await life.engines.find(version);
  if (found.ok) return found.engine;
  throw new MillraceError('bad_request', found.detail, { faults: [{ path: field, message: found.detail }] });
}

export function addressIn(life: Life, database: string): Address {
  return onDatabase(life.controlAddress, database);
}

interface Wish extends Actor {
  readonly kind: MessageKind;
  readonly cause: string;
  /** The transaction that the message waits for. */
  readonly transaction?: { readonly xid: string; readonly pid: number };
}

/** Sends the launcher a message in a commit of its own, and notifies all processes to close their connections to the tenant. */
export async function sendOrder(life: Life, row: TenantRow, wish: Wish): Promise<number> {
  const id = await wishFor(life, life.control, row, wish);
  announceChange(life, row.id);
  return id;
}

export interface RestartHooks extends DrainHooks {
  /** The id of the message, once the transaction has begun. */
  readonly messageId: () => number;
}

/**
 * For a transaction that needs `drain`: sends the RESTART that waits for the transaction's end, and repeats the notification
 * while the transaction waits for its lock.
 */
export function makeRestartHooks(
  life: Life,
  row: TenantRow,
  { actor, cause }: Actor & { readonly cause: string },
): RestartHooks {
  let sent: number | undefined;
  return {
    onBegin: async (transaction) => {
      sent = await sendOrder(life, row, { kind: 'restart', cause, actor, transaction });
      checkpoint('tenant.told');
    },
    remind: () => hintChanged(life.hub, row.id),
    lockMs: life.lockMs,
    messageId: () => {
      if (sent === undefined) throw new Error('the transaction has not begun');
      return sent;
    },
  };
}

/** Sends the message as part of the caller's transaction. Call `announceChange` after its commit. */
export function wishFor(life: Life, db: Db, row: TenantRow, wish: Wish): Promise<number> {
  const { kind, cause, actor, transaction } = wish;
  const at = new Date(life.time.now());
  // a transaction id of another server means nothing to the launcher, which then inspects the tenant instead
  const known = transaction === undefined || life.isElsewhere(row) ? {} : { transaction };
  return sendMessage(db, { kind, tenant: row, sender: actor, cause, at, ...known });
}

/** Wakes the launcher only: processes keep their connections. */
export function announceTo({ hub }: Life): void {
  announce(hub);
}

/** Wakes the launcher, and all processes that serve the tenant. */
export function announceChange({ hub }: Life, tenantId: string): void {
  announce(hub);
  hintChanged(hub, tenantId);
}

/** Makes all processes drop their cached keys. */
export function forgetKeys({ hub }: Life): void {
  hub.send('revoked', everyone);
}

interface TenantEvent extends Actor {
  readonly type: string;
  /** Null: the event concerns no single tenant. */
  readonly tenantId: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Call it last in the transaction that makes the change. */
export async function record({ time }: Life, tx: Db, { type, tenantId, body, actor }: TenantEvent): Promise<void> {
  await append(tx, tenantTopic, [{ type, subject: tenantId, body }], { actor, at: new Date(time.now()) });
}

/** Waits up to `forMs` for the outcome of a message. Does not wait if no launcher is active. */
export async function outcome(life: Life, tenantId: string, messageId: number, forMs: number): Promise<Ordered> {
  const patience = (await isLauncherActive(life.control)) ? forMs : 0;
  return { tenantId, message: await awaitOutcome(life.control, messageId, { until: 'settled', forMs: patience }) };
}
