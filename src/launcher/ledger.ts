/**
 * The launcher's entries in one turn: as they were read, and as they become. Each change goes through the state machine,
 * whose effects become slots and orders here; what has changed is written when the turn is over.
 */
import { type Reason, type ReasonCode, reasons } from '../control/reasons.ts';
import type { Slots } from './slots.ts';
import { afterQuit, isLeft, isOtherwise, keepsSlot, type Quit, whenOtherwise } from './supervisor.ts';
import { type Effect, type LaunchEvent, type LaunchState, type Machine, step } from './states.ts';

interface LaunchTenant {
  readonly id: string;
  readonly name: string;
  readonly database: string;
  readonly databaseOid: number | null;
  readonly desired: 'on' | 'off';
  readonly discovered: boolean;
  readonly ownHost: boolean;
}

/** A row of `launch`. */
export interface Launch {
  readonly state: LaunchState;
  readonly code: ReasonCode | null;
  readonly reason: string | null;
  readonly waitOn: string | null;
  readonly version: string | null;
  readonly hostId: string | null;
  readonly engine: string | null;
  readonly orderNo: number;
  readonly ordered: boolean;
  readonly ending: boolean;
  readonly failures: number;
  readonly suspicion: number;
  readonly retryAt: Date | null;
  readonly changedAt: Date;
}

/** What a host says of an order. */
export interface Word {
  readonly orderNo: number;
  readonly hostId: string;
  readonly phase: 'starting' | 'running' | 'ended';
  readonly code: ReasonCode | null;
  readonly reason: string | null;
}

export interface LaunchEntry {
  readonly tenant: LaunchTenant;
  readonly before: Launch | undefined;
  launch: Launch | undefined;
  readonly word: Word | undefined;
  /** The transaction that its next start waits for has not ended, as far as this server knows. */
  readonly transactionIsOpen: boolean;
  /** Why it is ALLOCATED and not STARTED, as found in this turn. */
  pending?: Reason;
}

export interface Told {
  readonly hostId: string;
  readonly tenantId: string;
}

const blank: Omit<Launch, 'changedAt'> = {
  state: 'DISABLED',
  code: null,
  reason: null,
  waitOn: null,
  version: null,
  hostId: null,
  engine: null,
  orderNo: 0,
  ordered: false,
  ending: false,
  failures: 0,
  suspicion: 0,
  retryAt: null,
};

function machineOf({ state, waitOn, ordered, ending }: Launch): Machine {
  return { state, transaction: waitOn, scheduler: ending ? 'ending' : ordered ? 'ordered' : 'none' };
}

export class Ledger {
  readonly entries: ReadonlyMap<string, LaunchEntry>;
  readonly slots: Slots;
  readonly now: Date;
  /** So many tenants have a database without Millrace. */
  readonly uninstalled: number;
  /** Hosts whose orders have changed, and whose orders these are. */
  readonly told: Told[] = [];

  constructor(entries: readonly LaunchEntry[], slots: Slots, now: Date) {
    this.entries = new Map(entries.map((entry) => [entry.tenant.id, entry]));
    this.slots = slots;
    this.now = now;
    this.uninstalled = entries.filter(({ launch }) => launch?.code === 'not_installed').length;
  }

  /** Those that are registered. */
  *launches(): Generator<[LaunchEntry, Launch]> {
    for (const entry of this.entries.values()) if (entry.launch !== undefined) yield [entry, entry.launch];
  }

  /** Takes the entry through the state machine. */
  send(entry: LaunchEntry, event: LaunchEvent, more: Partial<Launch> = {}): void {
    const before = entry.launch ?? { ...blank, changedAt: this.now };
    const { entry: next, effects } = step(entry.launch && machineOf(entry.launch), event);
    const quit = event.kind === 'scheduler_quit' ? { hostId: null } : {};
    entry.launch = {
      ...before,
      state: next.state,
      waitOn: next.transaction,
      ordered: next.scheduler === 'ordered',
      ending: next.scheduler === 'ending',
      ...quit,
      ...more,
    };
    if (event.kind === 'scheduler_quit') this.slots.note(entry.tenant.id, { holder: null, reason: 'scheduler' });
    for (const effect of effects) this.#perform(entry, effect);
  }

  /** Its scheduler is no more, or could not come to be, for this reason. */
  quit(entry: LaunchEntry, quit: Quit): void {
    const failures = entry.launch?.failures ?? 0;
    if (isLeft(quit.code)) this.#startAnew(entry);
    else if (isOtherwise(quit.code)) {
      this.#startAnew(entry);
      const retryAt = whenOtherwise(failures, this.now);
      const { code, text } = retryAt === null ? reasons.starting : reasons.startingAfter(quit.detail);
      this.set(entry, { failures: failures + 1, retryAt, code, reason: text });
    } else {
      const { reason, ...rest } = afterQuit(quit, failures, this.now);
      const gone = quit.code === 'not_installed' ? { version: null } : {};
      this.send(entry, { kind: 'scheduler_quit' }, { code: reason.code, reason: reason.text, ...rest, ...gone });
    }
  }

  /** No fault of its own: in the slot that it has. */
  #startAnew(entry: LaunchEntry): void {
    this.send(entry, { kind: 'restart', transaction: entry.launch?.waitOn ?? null });
    if (entry.launch?.ending) this.send(entry, { kind: 'scheduler_quit' });
  }

  /** Changes what the state machine does not know of. */
  set(entry: LaunchEntry, more: Partial<Launch>): void {
    if (entry.launch !== undefined) entry.launch = { ...entry.launch, ...more };
  }

  #perform(entry: LaunchEntry, effect: Effect): void {
    const { id } = entry.tenant;
    switch (effect) {
      case 'reserve_slot':
        return this.slots.ask(id);
      case 'release_slot':
        if (entry.launch === undefined || !keepsSlot(entry.launch)) this.slots.release(id);
        return;
      case 'terminate_scheduler':
        return this.#terminate(entry);
      case 'start_scheduler':
        // whoever is ALLOCATED is seen to in every turn (start-tenants.ts)
        return;
    }
  }

  #terminate(entry: LaunchEntry): void {
    const host = entry.launch?.hostId ?? null;
    // its host is gone, and it with it
    if (host === null) return this.send(entry, { kind: 'scheduler_quit' });
    this.told.push({ hostId: host, tenantId: entry.tenant.id });
    this.slots.note(entry.tenant.id, { holder: host, reason: 'ending' });
  }
}
