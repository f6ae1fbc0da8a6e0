/**
 * Where a batch ends. It follows from the events and the revisions alone.
 *
 * A batch begins with the first event after the reader's position. The revision in force at that event sets its limits:
 * 1. It ends before the event that would exceed `maxEvents` or `maxBytes`. A single event may exceed `maxBytes`.
 * 2. It ends at a change of the number of strands.
 * 3. It ends at its stored end, if it was closed before it was full. A stored end wins over all else.
 * 4. Otherwise it is open. It may be closed once its window is over: counted from its first event, or from its last one
 *    (`quiet`).
 *
 * By 1 to 3 a batch is closed by the log, the revisions and the position alone, so whoever gathers it has the same events. A batch
 * closed by the clock has other events a moment later: its end must be stored before it is sent.
 */
import { Slices } from '../../kernel/process/slices.ts';
import type { BusEvent } from '../store.ts';
import { type Revision, revisionFor, strandFor, type Subscription } from './subscriptions.ts';

/** Brackets of the array. */
const frameBytes = 2;

export interface ReaderOfBatch {
  readonly subscription: Subscription;
  /** Undefined: events of all strands, for a replay. */
  readonly strand: number | undefined;
  readonly batchEnd: number | null;
  /** A limit beside that of the revision, for whoever stores the end of every batch. */
  readonly maxBytes?: number;
}

/** A batch being gathered. Events are offered in order. */
export class BatchBuilder {
  readonly #reader: ReaderOfBatch;
  readonly events: BusEvent[] = [];
  #bytes = frameBytes;
  #first: Revision | undefined;
  #next: BusEvent | undefined;
  #isClosed = false;

  constructor(reader: ReaderOfBatch) {
    this.#reader = reader;
  }

  /** The revision of its first event. */
  get revision(): Revision | undefined {
    return this.#first;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The reader's first event after the batch, if it was offered. */
  get next(): BusEvent | undefined {
    return this.#next;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns false if the batch is closed and the event after it is known: no further event is needed. */
  offer(event: BusEvent): boolean {
    const revision = this.#revisionOf(event);
    if (revision === undefined) return true;
    if (this.#isClosed || !this.#fits(event, revision)) {
      this.#isClosed = true;
      this.#next = event;
      return false;
    }
    this.#first ??= revision;
    this.events.push(event);
    this.#bytes += event.bytes + (this.events.length > 1 ? 1 : 0);
    this.#isClosed = this.#isFull(this.#first);
    return true;
  }

  /** Offers events in slices, because a filter may take long. Returns false as soon as no further event is needed. */
  async offerAll(events: readonly BusEvent[]): Promise<boolean> {
    const slices = new Slices();
    for (const event of events) {
      if (!this.offer(event)) return false;
      if (slices.isOver) await slices.pause();
    }
    return true;
  }

  /** All events up to this number were offered. */
  noteEnd(upTo: number): void {
    const { batchEnd } = this.#reader;
    if (batchEnd !== null && batchEnd <= upTo && this.events.length > 0) this.#isClosed = true;
  }

  #revisionOf(event: BusEvent): Revision | undefined {
    const { subscription, strand } = this.#reader;
    const revision = revisionFor(subscription, event);
    if (revision === undefined || strand === undefined) return revision;
    return strandFor(revision, event) === strand ? revision : undefined;
  }

  #fits(event: BusEvent, revision: Revision): boolean {
    const { batchEnd } = this.#reader;
    if (batchEnd !== null) return event.seq <= batchEnd;
    const first = this.#first;
    if (first === undefined) return true;
    if (revision.barrier > first.barrier) return false;
    return this.events.length < first.maxEvents && this.#bytes + event.bytes + 1 <= this.#maxBytes(first);
  }

  #isFull(first: Revision): boolean {
    if (this.#reader.batchEnd !== null) return this.events.at(-1)?.seq === this.#reader.batchEnd;
    return this.events.length >= first.maxEvents || this.#bytes >= this.#maxBytes(first);
  }

  #maxBytes({ maxBytes }: Revision): number {
    return Math.min(maxBytes, this.#reader.maxBytes ?? maxBytes);
  }
}

/** When an open batch may be closed. */
export function closesAtMs(events: readonly BusEvent[], { windowMs, quiet }: Revision): number {
  const from = quiet ? events.at(-1) : events[0];
  return (from?.atMs ?? 0) + windowMs;
}

/** What the id of a batch names: the revision is that of its first event. */
export interface NamedBatch {
  readonly subscriber: string;
  /** Undefined: events of all strands, for a replay. */
  readonly strand: number | undefined;
  readonly revision: Pick<Revision, 'originSeq' | 'version' | 'strands'>;
  readonly events: readonly BusEvent[];
}

/**
 * The id of a batch: one id always has the same events, whoever sends them. It has the last digits of the subscriber's id, because
 * the first ones are the same for subscribers that were created within a minute.
 */
export function batchId({ subscriber, strand, revision, events }: NamedBatch): string {
  const first = events[0]?.seq ?? 0;
  return `${subscriber.slice(-8)}_${strandLabel(revision, strand, first)}_${first}_${events.at(-1)?.seq ?? 0}`;
}

/**
 * The strand in a batch's id. Events from before the terms were written may have been delivered by other terms, with other events
 * between the same numbers. So their batches name the version of the terms, as do replays that mix the events of several strands.
 */
function strandLabel(
  { originSeq, version, strands }: NamedBatch['revision'],
  strand: number | undefined,
  first: number,
) {
  const isMixed = strand === undefined && strands > 1;
  if (first > originSeq && !isMixed) return `${strand ?? 0}`;
  return `${strand === undefined || strands === 1 ? '' : strand}r${version}`;
}

export function batchBody(events: readonly BusEvent[]): string {
  return `[${events.map((event) => event.body).join(',')}]`;
}
