/**
 * Slots: permission to run one background unit, at most `max_background_workers` in all. Who waits stands in line:
 * schedulers first, in order of asking; then housekeeping, of the tenant that was served longest ago. Where schedulers hold
 * them all, housekeeping would wait for ever: after a while one unit of each host runs in its own scheduler's slot.
 *
 * In memory, for one turn of the launcher: what it has changed is written when the turn is over.
 */
import { newId } from '../kernel/id.ts';

export interface Slot {
  readonly id: string;
  readonly kind: 'launcher' | 'scheduler' | 'housekeeping';
  readonly tenantId: string | null;
  /** The process it is for. */
  readonly holder: string | null;
  readonly reason: string;
  readonly askedAt: Date;
  /** Null: it waits. */
  readonly grantedAt: Date | null;
  /** Housekeeping that runs in the slot of its tenant's scheduler: it takes none of its own. */
  readonly lent: boolean;
}

/** How long housekeeping waits for a slot before it is lent one; its host gives up after a minute. */
const lentAfterMs = 20_000;

export interface SlotChanges {
  readonly removed: readonly Slot[];
  readonly added: readonly Slot[];
  readonly changed: readonly Slot[];
}

const blank = { holder: null, grantedAt: null, lent: false } as const;

export class Slots {
  readonly #before: ReadonlyMap<string, Slot>;
  readonly #rows: Map<string, Slot>;
  readonly #schedulers = new Map<string, string>();
  readonly #now: Date;
  readonly limit: number;

  constructor(rows: readonly Slot[], limit: number, now: Date) {
    this.#before = new Map(rows.map((row) => [row.id, row]));
    this.#rows = new Map(this.#before);
    this.#now = now;
    this.limit = limit;
    for (const row of rows)
      if (row.kind === 'scheduler' && row.tenantId !== null) this.#schedulers.set(row.tenantId, row.id);
  }

  /** The launcher's own, which it takes whatever the limit is. */
  keepLauncher(launcherId: string): void {
    const own = [...this.#rows.values()].find((row) => row.kind === 'launcher');
    const asked = { askedAt: this.#now, grantedAt: this.#now };
    const row = own ?? { ...blank, id: newId(), kind: 'launcher', tenantId: null, reason: 'launcher', ...asked };
    if (row.holder !== launcherId) this.#rows.set(row.id, { ...row, holder: launcherId, grantedAt: this.#now });
    else this.#rows.set(row.id, row);
  }

  ofScheduler(tenantId: string): Slot | undefined {
    const id = this.#schedulers.get(tenantId);
    return id === undefined ? undefined : this.#rows.get(id);
  }

  /** Asks for a scheduler's slot, unless it has one or is in line. */
  ask(tenantId: string): void {
    if (this.#schedulers.has(tenantId)) return;
    const row: Slot = { ...blank, id: newId(), kind: 'scheduler', tenantId, reason: 'scheduler', askedAt: this.#now };
    this.#rows.set(row.id, row);
    this.#schedulers.set(tenantId, row.id);
  }

  /** Gives back a scheduler's slot, or its place in the line. */
  release(tenantId: string): void {
    const id = this.#schedulers.get(tenantId);
    if (id === undefined) return;
    this.#rows.delete(id);
    this.#schedulers.delete(tenantId);
  }

  note(tenantId: string, { holder, reason }: Pick<Slot, 'holder' | 'reason'>): void {
    const row = this.ofScheduler(tenantId);
    if (row !== undefined && (row.holder !== holder || row.reason !== reason))
      this.#rows.set(row.id, { ...row, holder, reason });
  }

  /** Whether that process has any, or waits for one. */
  isHeldBy(holder: string): boolean {
    return [...this.#rows.values()].some((row) => row.holder === holder);
  }

  /** Frees what belongs to nobody: housekeeping of processes that are gone, schedulers that hold none. */
  free(isAlive: (holder: string) => boolean, mayHold: (tenantId: string) => boolean): void {
    for (const row of Array.from(this.#rows.values())) {
      if (row.kind === 'housekeeping' && (row.holder === null || !isAlive(row.holder))) this.#rows.delete(row.id);
      if (row.kind === 'scheduler' && row.tenantId !== null && !mayHold(row.tenantId)) this.release(row.tenantId);
    }
  }

  /**
   * Gives the slots that are free to those in line; answers who got one. So many of them are none of housekeeping's: those
   * who had them come back soon.
   */
  grant(servedAt: ReadonlyMap<string, number>, comingBack = 0): Slot[] {
    const free = Math.max(0, this.limit - this.#granted().length);
    const schedulers = this.#waiting('scheduler').slice(0, free);
    const left = Math.max(0, free - schedulers.length - comingBack);
    const housekeeping = this.#housekeeping(servedAt);
    const granted = [...schedulers, ...housekeeping.slice(0, left)].map((row) => ({ ...row, grantedAt: this.#now }));
    for (const row of granted) this.#rows.set(row.id, row);
    return [...granted, ...this.#lend(housekeeping.slice(left))];
  }

  /** One at a time of each host, in the order of the line. */
  #lend(housekeeping: readonly Slot[]): Slot[] {
    const busy = new Set([...this.#rows.values()].filter(({ lent }) => lent).map(({ holder }) => holder));
    const lent: Slot[] = [];
    for (const row of housekeeping) {
      const host = row.holder;
      const isLate = this.#now.getTime() - row.askedAt.getTime() >= lentAfterMs;
      const scheduler = this.ofScheduler(row.tenantId ?? '');
      if (host === null || !isLate || busy.has(host) || !scheduler?.grantedAt || scheduler.holder !== host) continue;
      busy.add(host);
      lent.push({ ...row, grantedAt: this.#now, lent: true });
    }
    for (const row of lent) this.#rows.set(row.id, row);
    return lent;
  }

  /**
   * Tenants whose schedulers hold more slots than there are, the newest first; housekeeping is soon over, and no scheduler is
   * stopped for it. `stays`: it is not already on its way out.
   */
  surplus(stays: (tenantId: string) => boolean): string[] {
    const lasting = this.#granted().filter((row) => row.kind !== 'housekeeping');
    const kept = lasting.filter((row) => row.kind === 'launcher' || stays(row.tenantId ?? ''));
    const over = Math.max(0, kept.length - this.limit);
    return kept
      .filter((row) => row.kind === 'scheduler')
      .sort((a, b) => (b.grantedAt?.getTime() ?? 0) - (a.grantedAt?.getTime() ?? 0) || (a.id < b.id ? 1 : -1))
      .slice(0, over)
      .flatMap((row) => row.tenantId ?? []);
  }

  /** tenant → place in the line of schedulers; the first is 1. */
  positions(): ReadonlyMap<string, number> {
    return new Map(this.#waiting('scheduler').map((row, i) => [row.tenantId ?? '', i + 1]));
  }

  changes(): SlotChanges {
    const rows = [...this.#rows.values()];
    return {
      removed: [...this.#before.values()].filter(({ id }) => !this.#rows.has(id)),
      added: rows.filter((row) => !this.#before.has(row.id)),
      changed: rows.filter((row) => this.#before.has(row.id) && this.#before.get(row.id) !== row),
    };
  }

  /** Those that count. */
  #granted(): Slot[] {
    return [...this.#rows.values()].filter((row) => row.grantedAt !== null && !row.lent);
  }

  #waiting(kind: Slot['kind']): Slot[] {
    return [...this.#rows.values()]
      .filter((row) => row.kind === kind && row.grantedAt === null)
      .sort((a, b) => a.askedAt.getTime() - b.askedAt.getTime() || (a.id < b.id ? -1 : 1));
  }

  #housekeeping(servedAt: ReadonlyMap<string, number>): Slot[] {
    const served = (row: Slot): number => servedAt.get(row.tenantId ?? '') ?? 0;
    return roundRobin(this.#waiting('housekeeping').sort((a, b) => served(a) - served(b)));
  }
}

/** One of each tenant, then a second of each: nobody's many requests come before another's first. */
function roundRobin(rows: readonly Slot[]): Slot[] {
  const turns = new Map<string | null, number>();
  const withTurn = rows.map((row) => {
    const turn = turns.get(row.tenantId) ?? 0;
    turns.set(row.tenantId, turn + 1);
    return { row, turn };
  });
  return withTurn.sort((a, b) => a.turn - b.turn).map(({ row }) => row);
}
