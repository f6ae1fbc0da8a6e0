/**
 * Tenant life: what makes, changes and ends tenants. Each step is a function of its own in this folder; here is what they
 * all stand on.
 *
 * Every effect is either one transaction or can be repeated: a step that dies half way is completed, or undone, by the same
 * step again. Steps for one tenant follow each other, whichever process they come from.
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
import type { DatabaseFault } from '../postgres/vitals.ts';
import type { WakeHub } from '../postgres/wake.ts';
import type { TenantRow } from '../control/queries.ts';
import type { Engines } from '../loader/engines/engines.ts';
import type { Telling } from './drained-work.ts';
import {
  announce,
  awaitOutcome,
  hintChanged,
  type MessageKind,
  sendMessage,
  type SentMessage,
} from '../control/messages.ts';
import { findLifeRow, isLauncherActive, type LifeRow, whoHolds } from './queries.ts';

export interface Life {
  readonly control: Db;
  readonly controlAddress: Address;
  readonly hub: WakeHub;
  readonly time: Time;
  readonly engines: Pick<Engines, 'find' | 'list'>;
  /** The migrations and functions of an engine that is here. */
  readonly schemaOf: (version: string) => Promise<SchemaSource>;
  /** The running release. */
  readonly version: string;
  readonly addressOf: (row: TenantRow) => Address;
  /** Whether its database is on another server than the control database. */
  readonly isElsewhere: (row: TenantRow) => boolean;
  /** Whether databases of the server are tenants without being registered. */
  readonly discovers: boolean;
  /** `max_background_workers` where nobody has set it. */
  readonly slotLimit: number;
  /** What this process observes of the control database; undefined: it answers, and takes writes. */
  readonly databaseFault: () => DatabaseFault | undefined;
  /** What is wrong with the clock of the control database's server, in words. */
  readonly clockFault?: () => string | undefined;
  /** How long a migration waits for what somebody holds on tables; default: `usualLockMs`. */
  readonly lockMs?: number;
}

/** Who does it, for messages and events. */
export interface Actor {
  readonly actor: string;
}

export interface Ordered {
  readonly tenantId: string;
  readonly message: SentMessage;
}

/** Another step for the same tenant may take this long; then this one gives up. */
const patienceMs = 60_000;

/**
 * One step at a time for each of these names, over all processes; the lock dies with its connection. That connection is of
 * the control database, and the step's own: databases are made, renamed and dropped on it.
 */
export function exclusively<T>(life: Life, names: readonly string[], step: (client: Client) => Promise<T>): Promise<T> {
  return withClient(life.controlAddress, async (client) => {
    const db = onClient(client);
    await client.query(`set search_path to control; ${notForgotten('control')}`);
    await db.exec(sql`select set_config('lock_timeout', ${`${patienceMs}ms`}, false)`);
    try {
      // always in the same order, so that two renames that cross cannot wait for each other
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

export async function existing(life: Life, name: string): Promise<LifeRow> {
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
  const holders = isInUse(error) ? await whoHolds(onClient(client), database, what).catch(() => []) : [];
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
  if (notForTenants.has(database)) return 'it is one of PostgreSQL itself';
  if (Buffer.byteLength(database) > 63) return 'a name has at most 63 bytes in PostgreSQL';
  if (!isAddressable(database)) return 'no address can mean it';
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
  /** The transaction that it waits for. */
  readonly transaction?: { readonly xid: string; readonly pid: number };
}

/** Sends the launcher a message, in a commit of its own, and tells all processes to close their connections to the tenant. */
export async function sendOrder(life: Life, row: TenantRow, wish: Wish): Promise<number> {
  const id = await wishFor(life, life.control, row, wish);
  announceChange(life, row.id);
  return id;
}

export interface Restarting extends Telling {
  /** The message's number, once the transaction has begun. */
  readonly messageId: () => number;
}

/** For a transaction that needs `drain`: first sends the RESTART that waits for it, and repeats the hint while it waits. */
export function restarting(
  life: Life,
  row: TenantRow,
  { actor, cause }: Actor & { readonly cause: string },
): Restarting {
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

/** The message alone, for a transaction that does more; call `announceChange` after its commit. */
export function wishFor(life: Life, db: Db, row: TenantRow, wish: Wish): Promise<number> {
  const { kind, cause, actor, transaction } = wish;
  const at = new Date(life.time.now());
  // a number of another server's says nothing to this one's launcher, which looks at the tenant itself then
  const known = transaction === undefined || life.isElsewhere(row) ? {} : { transaction };
  return sendMessage(db, { kind, tenant: row, sender: actor, cause, at, ...known });
}

/** The launcher looks; connections stay. */
export function announceTo({ hub }: Life): void {
  announce(hub);
}

/** Wakes the launcher, and all processes that serve the tenant. */
export function announceChange({ hub }: Life, tenantId: string): void {
  announce(hub);
  hintChanged(hub, tenantId);
}

/** What the tenant's keys open is asked for again. */
export function forgetKeys({ hub }: Life): void {
  hub.send('revoked', everyone);
}

interface TenantEvent extends Actor {
  readonly type: string;
  /** Null: of no tenant in particular. */
  readonly tenantId: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Last in the transaction that makes the change. */
export async function record({ time }: Life, tx: Db, { type, tenantId, body, actor }: TenantEvent): Promise<void> {
  await append(tx, tenantTopic, [{ type, subject: tenantId, body }], { actor, at: new Date(time.now()) });
}

/** What came of a message by then; without a launcher there is nothing to wait for. */
export async function outcome(life: Life, tenantId: string, messageId: number, forMs: number): Promise<Ordered> {
  const patience = (await isLauncherActive(life.control)) ? forMs : 0;
  return { tenantId, message: await awaitOutcome(life.control, messageId, { until: 'settled', forMs: patience }) };
}
