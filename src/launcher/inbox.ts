/**
 * Messages to the launcher within one turn. They are taken one at a time, oldest first, acknowledged at once, and settled when
 * their outcome is known.
 */
import type { OpenMessage } from './launch-queries.ts';
import type { Launch, LaunchEntry, Ledger } from './ledger.ts';
import type { Outcome } from '../control/messages.ts';
import { formatReason } from '../control/format-reason.ts';
import { type Reason, type ReasonCode, reasons } from '../control/reasons.ts';

export class Inbox {
  readonly #before: readonly OpenMessage[];
  readonly #messages: Map<number, OpenMessage>;
  /** Messages handled so far that are not settled, by tenant. */
  readonly #open = new Map<string, OpenMessage[]>();
  readonly #now: Date;

  constructor(messages: readonly OpenMessage[], now: Date) {
    this.#before = messages;
    this.#messages = new Map(messages.map((message) => [message.id, message]));
    this.#now = now;
  }

  /** Returns the tenants that new messages name: findings about them are out of date. */
  take(ledger: Ledger): Set<string> {
    const about = new Set<string>();
    for (const message of this.#before) {
      if (message.deadline <= this.#now) this.#settle(message, 'timed_out', 'it was not settled before its deadline');
      else if (message.acknowledgedAt === null) {
        this.#handle(ledger, message, ledger.entries.get(message.tenantId));
        about.add(message.tenantId);
      } else this.#note(message);
    }
    return about;
  }

  #handle(ledger: Ledger, message: OpenMessage, entry: LaunchEntry | undefined): void {
    if (entry === undefined) return this.#settle(message, 'gone', 'there is no such tenant');
    this.#supersede(message);
    this.#update({ ...message, acknowledgedAt: this.#now, outcome: 'accepted' });
    // a user's stop lasts until a user's start or restart, which sets the desired state to on
    if (message.kind === 'stop' || entry.tenant.desired === 'off')
      return ledger.send(entry, { kind: 'stop' }, withoutFailures(reasons.stoppedByUser));
    const event = message.kind === 'start' ? { kind: message.kind } : { kind: message.kind, transaction: message.xid };
    const isUp = message.kind === 'start' && entry.launch?.state === 'STARTED';
    ledger.send(entry, event, isUp ? {} : withoutFailures(reasons.starting));
  }

  /**
   * A stop supersedes starts and restarts before it, a restart supersedes stops. Messages that want the same have the same
   * outcome: all starts and restarts of a tenant are settled when it runs, all stops when it has stopped.
   */
  #supersede(by: OpenMessage): void {
    const before = this.#open.get(by.tenantId) ?? [];
    const isOver = ({ kind }: OpenMessage): boolean =>
      by.kind !== 'start' && (by.kind === 'stop') !== (kind === 'stop');
    for (const older of before.filter(isOver))
      this.#settle(this.#messages.get(older.id) ?? older, 'superseded', `by message ${by.id} (${by.kind})`);
    this.#open.set(by.tenantId, [...before.filter((older) => !isOver(older)), by]);
  }

  #note(message: OpenMessage): void {
    const open = this.#open.get(message.tenantId);
    if (open === undefined) this.#open.set(message.tenantId, [message]);
    else open.push(message);
  }

  /** Settles acknowledged messages whose outcome is known. */
  settle(ledger: Ledger): void {
    for (const message of this.#messages.values()) {
      if (message.settledAt !== null || message.acknowledgedAt === null) continue;
      const launch = ledger.entries.get(message.tenantId)?.launch;
      if (launch === undefined) this.#settle(message, 'gone', 'there is no such tenant any more');
      else if (message.kind === 'stop') this.#settleStop(message, launch);
      else this.#settleStart(message, launch);
    }
  }

  #settleStop(message: OpenMessage, { ending }: Launch): void {
    if (!ending) this.#settle(message, 'stopped', null);
  }

  #settleStart(message: OpenMessage, { state, ending, reason, version }: Launch): void {
    if (ending) return;
    // after a failed upgrade the restart succeeds, at the old version
    if (state === 'STARTED') return this.#settle(message, 'started', version === null ? null : `at ${version}`);
    const detail = reason === null ? null : formatReason(reason);
    // a tenant may wait long for a slot; its sender need not
    if (reason !== null && (state === 'DISABLED' || reason.code === 'no_slot'))
      return this.#settle(message, outcomes[reason.code], detail);
    const outcome = reason?.code === 'waiting_on_transaction' ? outcomes[reason.code] : 'accepted';
    if (outcome !== message.outcome || detail !== message.detail) this.#update({ ...message, outcome, detail });
  }

  changes(): OpenMessage[] {
    return this.#before.flatMap((message) => {
      const now = this.#messages.get(message.id);
      return now === undefined || now === message ? [] : now;
    });
  }

  #settle(message: OpenMessage, outcome: Outcome, detail: string | null): void {
    const acknowledgedAt = message.acknowledgedAt ?? this.#now;
    this.#update({ ...message, outcome, detail, acknowledgedAt, settledAt: this.#now });
  }

  #update(message: OpenMessage): void {
    this.#messages.set(message.id, message);
  }
}

/** A message resets the failures of the tenant. */
function withoutFailures(reason: Reason): Partial<Launch> {
  return { reason, failures: 0, retryAt: null };
}

/** The outcome of a start for a tenant that does not run, by the code of its reason. */
const outcomes = {
  stopped_by_user: 'stopped',
  starting: 'accepted',
  stopping: 'stopped',
  waiting_on_transaction: 'waiting_for_transaction',
  no_slot: 'no_slot',
  no_engine: 'no_engine',
  not_installed: 'not_installed',
  unreachable: 'unreachable',
  not_connectable: 'unreachable',
  crashed: 'crashed',
  failing: 'crashed',
  gone: 'gone',
} as const satisfies Record<ReasonCode, Outcome>;
