/**
 * Slots: permission to run the launcher or a scheduler, at most `max_background_workers` in all. Schedulers without a slot
 * wait in line, in the order of their requests. Housekeeping runs in the slot of its tenant's scheduler.
 *
 * Holds the slots in memory for one turn of the launcher; changes are written at the end of the turn.
 */
import { newId } from '../kernel/id.ts';

export interface Slot {
  readonly id: string;
  readonly kind: 'launcher' | 'scheduler';
  readonly tenantId: string | null;
  /** The process that the slot is for. */
  readonly holder: string | null;
  readonly reason: string;
  readonly askedAt: Date;
  /** Null: it waits. */
  readonly grantedAt: Date | null;
}

export interface SlotChanges {
  readonly removed: readonly Slot[];
  readonly added: readonly Slot[];
  readonly changed: readonly Slot[];
}

const blank = { holder: null, grantedAt: null } as const;

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

  /** Takes the launcher's own slot, whatever the limit is. */
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

  /** Requests a slot for a scheduler, unless it has one or is in line. */
  ask(tenantId: string): void {
    if (this.#schedulers.has(tenantId)) return;
    const row: Slot = { ...blank, id: newId(), kind: 'scheduler', tenantId, reason: 'scheduler', askedAt: this.#now };
    this.#rows.set(row.id, row);
    this.#schedulers.set(tenantId, row.id);
  }

  /** Releases a scheduler's slot, or its place in the line. */
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

  /** Releases the slots of tenants that may hold none. */
  free(mayHold: (tenantId: string) => boolean): void {
    for (const tenantId of Array.from(this.#schedulers.keys())) if (!mayHold(tenantId)) this.release(tenantId);
  }

  /** Grants free slots to schedulers in line. Returns the tenants that got one. */
  grant(): string[] {
    const free = Math.max(0, this.limit - this.#granted().length);
    const granted = this.#waiting().slice(0, free);
    for (const row of granted) this.#rows.set(row.id, { ...row, grantedAt: this.#now });
    return granted.flatMap(({ tenantId }) => tenantId ?? []);
  }

  /** Tenants that must give up their slots because of the limit, newest first. `stays`: the tenant is not already ending. */
  surplus(stays: (tenantId: string) => boolean): string[] {
    const kept = this.#granted().filter((row) => row.kind === 'launcher' || stays(row.tenantId ?? ''));
    const over = Math.max(0, kept.length - this.limit);
    return kept
      .filter((row) => row.kind === 'scheduler')
      .sort((a, b) => (b.grantedAt?.getTime() ?? 0) - (a.grantedAt?.getTime() ?? 0) || (a.id < b.id ? 1 : -1))
      .slice(0, over)
      .flatMap((row) => row.tenantId ?? []);
  }

  /** tenant → position in the line; the first is 1. */
  positions(): ReadonlyMap<string, number> {
    return new Map(this.#waiting().map((row, i) => [row.tenantId ?? '', i + 1]));
  }

  changes(): SlotChanges {
    const rows = [...this.#rows.values()];
    return {
      removed: [...this.#before.values()].filter(({ id }) => !this.#rows.has(id)),
      added: rows.filter((row) => !this.#before.has(row.id)),
      changed: rows.filter((row) => this.#before.has(row.id) && this.#before.get(row.id) !== row),
    };
  }

  #granted(): Slot[] {
    return [...this.#rows.values()].filter(({ grantedAt }) => grantedAt !== null);
  }

  #waiting(): Slot[] {
    return [...this.#rows.values()]
      .filter(({ grantedAt }) => grantedAt === null)
      .sort((a, b) => a.askedAt.getTime() - b.askedAt.getTime() || (a.id < b.id ? -1 : 1));
  }
}
