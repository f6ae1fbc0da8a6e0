/**
 * The launcher's entries in one turn: as they were read, and as they become. Each change goes through the state machine,
 * whose effects become slots and orders here. Changed entries are written when the turn is over.
 */
import { type Reason, reasons } from '../control/reasons.ts';
import type { HostReport } from '../hosts/host-queries.ts';
import type { Slots } from './slots.ts';
import { afterQuit, hasChanged, isHostLeaving, keepsSlot, type Quit, retryAfterChange } from './supervisor.ts';
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
  readonly reason: Reason | null;
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

/** A host's report on an order, with its sender. */
export interface OrderReport extends Pick<HostReport, 'orderNo' | 'phase' | 'reason'> {
  readonly hostId: string;
}

export interface LaunchEntry {
  readonly tenant: LaunchTenant;
  readonly before: Launch | undefined;
  launch: Launch | undefined;
  readonly report: OrderReport | undefined;
  /** The transaction that the next start waits for has not ended, according to this server. */
  readonly transactionIsOpen: boolean;
  /** Why the tenant is ALLOCATED and not STARTED, found in this turn. */
  pending?: Reason;
}

/** An order that is new or was withdrawn. */
export interface ChangedOrder {
  readonly hostId: string;
  readonly tenantId: string;
}

const blank: Omit<Launch, 'changedAt'> = {
  state: 'DISABLED',
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
  /** Number of tenants without Millrace in their database. */
  readonly uninstalled: number;
  /** Changed orders, whose hosts must be notified. */
  readonly changedOrders: ChangedOrder[] = [];

  constructor(entries: readonly LaunchEntry[], slots: Slots, now: Date) {
    this.entries = new Map(entries.map((entry) => [entry.tenant.id, entry]));
    this.slots = slots;
    this.now = now;
    this.uninstalled = entries.filter(({ launch }) => launch?.reason?.code === 'not_installed').length;
  }

  /** The registered tenants. */
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

  /** Records that the tenant's scheduler has ended or could not start. */
  quit(entry: LaunchEntry, quit: Quit): void {
    const { failures = 0 } = entry.launch ?? {};
    const { code } = quit.reason;
    if (isHostLeaving(code)) this.#startAgain(entry);
    else if (hasChanged(code)) {
      this.#startAgain(entry);
      const retryAt = retryAfterChange(failures, this.now);
      const reason: Reason = retryAt === null ? reasons.starting : { ...quit.reason, code: 'starting' };
      this.set(entry, { failures: failures + 1, retryAt, reason });
    } else {
      const gone = code === 'not_installed' ? { version: null } : {};
      this.send(entry, { kind: 'scheduler_quit' }, { ...afterQuit(quit, failures, this.now), ...gone });
    }
  }

  /** Restarts it in its slot: the end was not its fault. */
  #startAgain(entry: LaunchEntry): void {
    this.send(entry, { kind: 'restart', transaction: entry.launch?.waitOn ?? null });
    if (entry.launch?.ending) this.send(entry, { kind: 'scheduler_quit' });
  }

  /** Changes columns that the state machine does not know. */
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
        // every turn goes through the tenants that are ALLOCATED (start-tenants.ts)
        return;
    }
  }

  #terminate(entry: LaunchEntry): void {
    const host = entry.launch?.hostId ?? null;
    // its host is gone, and the scheduler with it
    if (host === null) return this.send(entry, { kind: 'scheduler_quit' });
    this.changedOrders.push({ hostId: host, tenantId: entry.tenant.id });
    this.slots.note(entry.tenant.id, { holder: host, reason: 'ending' });
  }
}
