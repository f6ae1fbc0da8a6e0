/**
 * Messages to the launcher: durable rows that the sender commits at once, independently of the transaction that they refer
 * to. A launcher that was down handles them when it is back. It acknowledges a message before it waits for anything.
 */
import { everyone } from '../contract/channels.ts';
import type { Db } from '../kernel/sql.ts';
import { sql } from '../kernel/sql.ts';
import { pause } from '../kernel/service.ts';
import type { WakeHub } from '../postgres/wake.ts';

export type MessageKind = 'start' | 'stop' | 'restart';

export type Outcome =
  | 'accepted'
  | 'stopped'
  | 'waiting_for_transaction'
  | 'started'
  | 'no_engine'
  | 'no_slot'
  | 'not_installed'
  | 'unreachable'
  | 'crashed'
  | 'gone'
  | 'superseded'
  | 'timed_out';

export interface Message {
  readonly kind: MessageKind;
  readonly tenant: { readonly id: string; readonly name: string };
  readonly sender: string;
  readonly cause: string;
  /** The transaction that a restart waits for. */
  readonly transaction?: { readonly xid: string; readonly pid: number };
  readonly at: Date;
}

export interface SentMessage {
  readonly id: number;
  readonly kind: MessageKind;
  readonly tenant: string;
  readonly sender: string;
  readonly cause: string;
  readonly xid: string | null;
  readonly sentAt: Date;
  readonly deadline: Date;
  readonly outcome: Outcome | null;
  readonly detail: string | null;
  readonly acknowledgedAt: Date | null;
  readonly settledAt: Date | null;
}

/** A message expires after this time. A launcher that comes back later acts on the desired state alone. */
const lifeMs = 86_400_000;

/** Send it in the transaction that changes the desired state, if there is one. Call `announce` after the commit. */
export async function sendMessage(db: Db, message: Message): Promise<number> {
  const { id } = await db.one<{ id: number }>(sql`
    insert into message (kind, tenant_id, tenant, sender, cause, xid, pid, sent_at, deadline)
    values (${message.kind}, ${message.tenant.id}, ${message.tenant.name}, ${message.sender}, ${message.cause},
            ${message.transaction?.xid ?? null}::text::xid8, ${message.transaction?.pid ?? null}::integer,
            ${message.at}, ${new Date(message.at.getTime() + lifeMs)})
    returning id`);
  return id;
}

/** Wakes the launcher. */
export function announce(hub: WakeHub): void {
  hub.send('messages', everyone);
}

/** Makes all processes close their connections to the tenant, and read its version before the next use. */
export function hintChanged(hub: WakeHub, tenantId: string): void {
  hub.send('tenant', tenantId, true);
}

/** Waits until the message is settled or acknowledged, at most `forMs`, and returns it as it is then. */
export async function awaitOutcome(
  db: Db,
  id: number,
  { until, forMs, signal }: { until: 'acknowledged' | 'settled'; forMs: number; signal?: AbortSignal },
): Promise<SentMessage> {
  const deadline = performance.now() + forMs;
  for (;;) {
    const message = await readMessage(db, id);
    const done = until === 'settled' ? message.settledAt : message.acknowledgedAt;
    if (done !== null || performance.now() > deadline || signal?.aborted) return message;
    await pause(50, signal);
  }
}

const columns = sql`
  id, kind, tenant, sender, cause, xid::text, sent_at as "sentAt", deadline, outcome, detail,
  acknowledged_at as "acknowledgedAt", settled_at as "settledAt"`;

function readMessage(db: Db, id: number): Promise<SentMessage> {
  return db.one<SentMessage>(sql`select ${columns} from message where id = ${id}`);
}

export async function isMessageTo(db: Db, tenantId: string, id: number): Promise<boolean> {
  return (await db.maybeOne(sql`select from message where id = ${id} and tenant_id = ${tenantId}`)) !== undefined;
}

/** Newest first. */
export function messagesOf(
  db: Db,
  tenantId: string,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<SentMessage[]> {
  const earlier = page.before === undefined ? sql`true` : sql`id < ${page.before}`;
  return db.rows<SentMessage>(sql`
    select ${columns} from message where tenant_id = ${tenantId} and ${earlier} order by id desc limit ${page.limit}`);
}

/** Deletes at most `most` messages that were settled before then. Returns their number. */
export function forgetMessages(db: Db, settledBefore: Date, most: number): Promise<number> {
  return db.exec(sql`
    delete from message where id in (select id from message where settled_at < ${settledBefore} limit ${most})`);
}
