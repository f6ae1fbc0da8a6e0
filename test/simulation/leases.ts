/**
 * When a run may be called lost (I4), from what its worker has let be heard: nothing for a lease's length, a newer life of
 * the same worker, or a heartbeat well after the claim that does not name the run.
 */
import type { Heartbeat } from '../../src/contract/engine.ts';

const leaseMs = 30_000;
const unlistedMs = 10_000;

interface Contact {
  untilMs: number;
  incarnation: number;
  beatMs: number;
  holds: ReadonlySet<string>;
}

export interface HandedOut {
  readonly id: string;
  readonly worker: string;
  readonly incarnation: number;
  readonly claimedMs: number;
}

export class Leases {
  readonly #contacts = new Map<string, Contact>();

  claimed(worker: string, incarnation: number, atMs: number): void {
    const known = this.#contacts.get(worker) ?? { untilMs: 0, incarnation: 0, beatMs: 0, holds: new Set() };
    const untilMs = Math.max(known.untilMs, atMs + leaseMs);
    this.#contacts.set(worker, { ...known, untilMs, incarnation: Math.max(known.incarnation, incarnation) });
  }

  /** One of an earlier life says nothing. */
  renewed({ worker, incarnation, holds }: Heartbeat, atMs: number): void {
    if ((this.#contacts.get(worker)?.incarnation ?? 0) > incarnation) return;
    const named = new Set(holds.map((held) => held.run));
    this.#contacts.set(worker, { untilMs: atMs + leaseMs, incarnation, beatMs: atMs, holds: named });
  }

  isLost(run: HandedOut, atMs: number): boolean {
    const contact = this.#contacts.get(run.worker);
    if (contact === undefined || contact.untilMs <= atMs || contact.incarnation > run.incarnation) return true;
    return contact.beatMs > run.claimedMs + unlistedMs && !contact.holds.has(run.id);
  }
}
