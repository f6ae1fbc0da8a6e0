/**
 * The events that a reader far behind has read by itself. A page holds several batches, so the rest of it is kept for the next ones:
 * without that, each batch of 100 read 1,000 events (bench bus, 2026-11-18).
 *
 * The subscriptions decide for ever about events that are counted, and only those are read. A page still belongs to the subscription
 * that it was read for: after a change, it is read again.
 */
import type { BusEvent } from '../store.ts';
import type { Subscription } from './subscriptions.ts';

export interface Page {
  readonly events: readonly BusEvent[];
  /** All events up to this number that concern the subscription are there. */
  readonly lookedTo: number;
}

export class OwnPage {
  #kept: (Page & { readonly subscription: Subscription; readonly after: number }) | undefined;

  forget(): void {
    this.#kept = undefined;
  }

  /** The kept events after a number and up to another, or those that `read` finds. */
  async after(subscription: Subscription, after: number, to: number, read: () => Promise<Page>): Promise<Page> {
    const kept = this.#kept;
    if (kept?.subscription === subscription && kept.after <= after && after < kept.lookedTo) {
      const events = startAfter(kept.events, after);
      this.#kept = { ...kept, after, events };
      return { events: events.filter(({ seq }) => seq <= to), lookedTo: Math.min(to, kept.lookedTo) };
    }
    const page = await read();
    this.#kept = { ...page, subscription, after };
    return page;
  }
}

function startAfter(events: readonly BusEvent[], after: number): readonly BusEvent[] {
  const first = events.findIndex(({ seq }) => seq > after);
  return first === -1 ? [] : events.slice(first);
}
