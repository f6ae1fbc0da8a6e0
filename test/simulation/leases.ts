/**
 * The model of leases: when a run may count as lost (I4). Either its worker was silent for the length of a lease, or it
 * has a newer incarnation, or one of its heartbeats well after the claim does not list the run.
 */
import type { Heartbeat } from '../../src/contract/engine.ts';

const leaseMs = 30_000;
/** A heartbeat must list a run only this long after its claim. */
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

  recordClaim(worker: string, incarnation: number, atMs: number): void {
    const known = this.#contacts.get(worker) ?? { untilMs: 0, incarnation: 0, beatMs: 0, holds: new Set() };
    const untilMs = Math.max(known.untilMs, atMs + leaseMs);
    this.#contacts.set(worker, { ...known, untilMs, incarnation: Math.max(known.incarnation, incarnation) });
  }

  /** Heartbeats of an earlier incarnation are ignored. */
  recordHeartbeat({ worker, incarnation, holds }: Heartbeat, atMs: number): void {
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
