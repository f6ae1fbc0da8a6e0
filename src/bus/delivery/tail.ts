/**
 * The tail: the newest events of a tenant's log, which all readers near its head share, and the fan-out that counts them.
 *
 * 1. Events up to `fanned` are counted, and the known subscriptions decide about them for ever. Readers are given no others.
 * 2. A page is read once for all readers. Readers further behind than the kept events read by themselves.
 * 3. Several couriers may fan out the same page: one of them succeeds, the others continue where it ended.
 */
import type { HeldErrand } from '../../errands/contract.ts';
import { checkpoint } from '../checkpoints.ts';
import type { BusEvent, BusState, BusStore, ReaderName } from '../store.ts';
import { countPage } from './count-page.ts';
import { type Subscription, Subscriptions, topicsAfter } from './subscriptions.ts';

export const tailLimits = {
  page: { events: 1_000, bytes: 1024 * 1024 },
  /** Bytes of a page that one reader reads and keeps: 64 MiB for the 512 readers of a tenant that a courier holds. */
  ownPage: { events: 1_000, bytes: 128 * 1024 },
  /** Of the kept events that a reader is given at once: a batch rarely needs more. */
  nearEvents: 1_000,
  /** Kept for readers. A reader further behind reads by itself. */
  keptEvents: 10_000,
  keptBytes: 8 * 1024 * 1024,
  /** Kept by all tenants of this process together. */
  allKeptBytes: 16 * 1024 * 1024,
} as const;

/** Tails of this process: they share the memory for kept events. */
const tails = new Set<Tail>();

export interface Advanced {
  readonly taken: readonly HeldErrand[];
  /** Whether a page was found, so that more may follow. */
  readonly isMoved: boolean;
  readonly nextDueAtMs: number | undefined;
}

export interface TailOptions {
  readonly store: BusStore;
  readonly now: () => number;
  /** These readers have new events; undefined: any may have. */
  readonly onNews: (readers: readonly ReaderName[] | undefined) => void;
}

export class Tail {
  readonly #store: BusStore;
  readonly #options: TailOptions;
  #subscriptions: Subscriptions | undefined;
  #fanned = 0;
  /** Events after `#keptFrom`, without a gap. */
  #kept: BusEvent[] = [];
  #keptFrom = 0;
  #keptBytes = 0;

  constructor(options: TailOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  get fanned(): number {
    return this.#fanned;
  }

  subscriptionOf(subscriber: string): Subscription | undefined {
    return this.#subscriptions?.of(subscriber);
  }

  open(): void {
    tails.add(this);
  }

  close(): void {
    tails.delete(this);
    this.#reset(this.#fanned);
  }

  /** Counts the next page of events. `room`: errands that this courier can take at once. */
  async advance(room: number): Promise<Advanced> {
    const subscriptions = this.#subscriptions ?? (await this.#refresh());
    const from = this.#fanned;
    const page = await this.#store.readPage(from, Number.MAX_SAFE_INTEGER, tailLimits.page);
    const last = page.at(-1);
    if (last === undefined) return { taken: [], isMoved: false, nextDueAtMs: undefined };
    checkpoint('fanout.read');
    const readers = await countPage(subscriptions, page);
    const nowMs = this.#options.now();
    const { revision } = subscriptions;
    const fanned = await this.#store.fanOut({ from, to: last.seq, revision, readers, room, nowMs });
    checkpoint('fanout.done');
    if (!fanned.isMoved) {
      await this.#refresh();
      return { taken: [], isMoved: true, nextDueAtMs: undefined };
    }
    // a refresh meanwhile may have come further
    if (this.#fanned === from) {
      this.#keep(page);
      this.#fanned = last.seq;
    }
    this.#options.onNews(readers);
    return { taken: fanned.taken, isMoved: true, nextDueAtMs: fanned.nextDueAtMs };
  }

  /** Knows at least this state of the bus. */
  async ensure(state: BusState): Promise<void> {
    if (
      this.#subscriptions === undefined ||
      this.#subscriptions.revision < state.revision ||
      this.#fanned < state.fanned
    )
      await this.#refresh();
  }

  /** Events after a number in order, of which all up to `lookedTo` that concern the subscription are there. */
  async read(
    subscription: Subscription,
    after: number,
    to: number,
  ): Promise<{ readonly events: readonly BusEvent[]; readonly lookedTo: number }> {
    if (this.isNear(after)) {
      const first = this.#indexAfter(after);
      const end = this.#indexAfter(to);
      const events = this.#kept.slice(first, Math.min(end, first + tailLimits.nearEvents));
      return { events, lookedTo: first + events.length < end ? (events.at(-1)?.seq ?? to) : to };
    }
    return this.#store.readTopics({ after, to, topics: topicsAfter(subscription, after) }, tailLimits.ownPage);
  }

  /** Whether events after a number are kept here. */
  isNear(after: number): boolean {
    return after >= this.#keptFrom;
  }

  /** The state is read with the revisions, so they are final for all events up to it. */
  async #refresh(): Promise<Subscriptions> {
    const { state, revisions } = await this.#store.readRevisions();
    const known = this.#subscriptions;
    if (known === undefined || known.revision < state.revision)
      this.#subscriptions = new Subscriptions(state.revision, revisions);
    if (state.fanned > this.#fanned) {
      await this.#fill(state.fanned);
      this.#options.onNews(undefined);
    }
    return this.#subscriptions ?? new Subscriptions(state.revision, revisions);
  }

  /** Reads what another courier has counted, unless that is more than is kept. */
  async #fill(to: number): Promise<void> {
    const from = this.#fanned;
    const page = from === 0 ? [] : await this.#store.readPage(from, to, tailLimits.page);
    // another call may have come further meanwhile
    if (this.#fanned !== from) return;
    const last = page.at(-1);
    // a page that ends before `to` has reached one of its limits
    const isWhole = from > 0 && (last === undefined || last.seq === to);
    if (isWhole) this.#keep(page);
    else this.#reset(to);
    this.#fanned = to;
  }

  #keep(page: readonly BusEvent[]): void {
    for (const event of page) {
      this.#kept.push(event);
      this.#keptBytes += event.bytes;
    }
    const maxBytes = Math.min(tailLimits.keptBytes, tailLimits.allKeptBytes / Math.max(1, tails.size));
    let gone = 0;
    while (this.#kept.length - gone > tailLimits.keptEvents || this.#keptBytes > maxBytes) {
      const oldest = this.#kept[gone];
      if (oldest === undefined) break;
      this.#keptBytes -= oldest.bytes;
      this.#keptFrom = oldest.seq;
      gone += 1;
    }
    if (gone > 0) this.#kept = this.#kept.slice(gone);
  }

  #reset(to: number): void {
    this.#kept = [];
    this.#keptBytes = 0;
    this.#keptFrom = to;
  }

  #indexAfter(seq: number): number {
    let low = 0;
    let high = this.#kept.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#kept[middle]?.seq ?? Number.POSITIVE_INFINITY) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
