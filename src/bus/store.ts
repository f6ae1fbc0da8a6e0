/**
 * The store of the event bus as couriers use it: the log, the subscriptions, and the position of each reader. One driver keeps
 * it in PostgreSQL; the contract leaves room for another on Redis.
 *
 * 1. Every write about a reader names the worker and the lease under which it holds the reader's errand, and the position from
 *    which it moves. It has no effect if another worker holds the errand, or the reader has moved.
 * 2. A write that had its effect may be repeated: the answer is the same, the effect is not.
 * 3. Events up to `fanned` are counted, each once, by the revision in force at its number. Revisions that were read after
 *    `fanned` are final for these events.
 */
import type { HeldErrand } from '../errands/contract.ts';

export interface BusEvent {
  readonly seq: number;
  readonly topicId: number;
  readonly keyHash: number;
  /** The only subscriber that receives it; null: all. */
  readonly target: string | null;
  readonly atMs: number;
  /** The finished element of a delivery's array. */
  readonly body: string;
  readonly bytes: number;
}

export interface BusState {
  /** The number of the last event that was counted for its readers. */
  readonly fanned: number;
  /** Changes with every subscription. */
  readonly revision: number;
}

/** A subscriber's topics, filter and limits from an event's number on. */
export interface RevisionRow {
  readonly subscriber: string;
  /** Events after this number. */
  readonly fromSeq: number;
  /** The number after which the terms were written. After a move back, `fromSeq` is before it. */
  readonly originSeq: number;
  /** No two terms of a subscriber share it. */
  readonly version: number;
  readonly topics: readonly number[];
  readonly filter: unknown;
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly windowMs: number;
  readonly quiet: boolean;
  readonly strands: number;
}

/** A reader of the bus log: one strand of a subscriber. */
export interface ReaderName {
  readonly subscriber: string;
  readonly strand: number;
}

/** A reader whose errand a worker holds. */
export interface HeldReader extends ReaderName {
  readonly lease: number;
}

/** The receiver of a subscriber's deliveries. Credential and secrets are encrypted. */
export interface Receiver {
  readonly name: string;
  readonly isActive: boolean;
  readonly callback: string;
  readonly credential: Buffer | null;
  readonly secrets: readonly Buffer[];
  readonly health: number;
  readonly lastDeliveredAtMs: number | null;
  readonly rate: number | null;
  readonly maxAttempts: number | null;
  readonly maxAgeMs: number | null;
  readonly requestMs: number | null;
}

/** A reader with its receiver, and the state of the bus at that moment. */
export interface LoadedReader extends HeldReader {
  readonly pos: number;
  readonly queued: number;
  readonly batchEnd: number | null;
  readonly attempts: number;
  readonly failures: number;
  readonly firstFailedAtMs: number | null;
  /** A strand before this one has events queued: it is the one that tries a receiver that fails. */
  readonly isBehindOther: boolean;
  readonly receiver: Receiver;
  readonly state: BusState;
}

/** Events of one page for one reader. */
export interface ReaderCount extends ReaderName {
  readonly events: number;
  readonly firstAtMs: number;
  /** The end of the window that begins with its first event. */
  readonly dueAtMs: number;
  /** Events that fill a batch. */
  readonly maxEvents: number;
  /** The events of this page alone fill a batch. */
  readonly isFull: boolean;
}

export interface FanOut {
  readonly from: number;
  readonly to: number;
  readonly revision: number;
  readonly readers: readonly ReaderCount[];
  /** Errands that the worker takes at once. */
  readonly room: number;
  readonly nowMs: number;
}

export interface FannedOut {
  /** False: another courier counted these events, or the subscriptions changed. */
  readonly isMoved: boolean;
  readonly taken: readonly HeldErrand[];
  /** When the next of the new errands is due. */
  readonly nextDueAtMs: number | undefined;
}

/** A reader moves past accepted events. */
export interface Done extends HeldReader {
  readonly from: number;
  readonly to: number;
  readonly events: number;
  readonly batches: number;
  /** When the event after them was accepted, if it is known. */
  readonly nextAtMs: number | null;
}

export interface DoneResult {
  readonly isHeld: boolean;
  readonly pos: number;
  readonly queued: number;
  readonly isActive: boolean;
}

export interface Failed extends HeldReader {
  readonly from: number;
  readonly runAtMs: number;
  readonly reason: string;
}

export interface CutShort extends HeldReader {
  readonly from: number;
  readonly end: number;
}

export interface DeadLetter {
  readonly id: string;
  readonly batch: string;
  readonly first: number;
  readonly last: number;
  readonly events: number;
  /** Null: retention dropped its events. */
  readonly body: string | null;
  readonly code: string;
  readonly status: number | null;
  readonly attempts: number;
  readonly firstFailedAtMs: number | null;
}

export interface GivenUp extends HeldReader {
  readonly from: number;
  readonly to: number;
  /** Events after the dead ones that were accepted. */
  readonly sent: number;
  readonly letter: DeadLetter;
  /** When to go on; null: at once. */
  readonly runAtMs: number | null;
}

/** One attempt, as the delivery log keeps it. */
export interface DeliveryRow {
  readonly subscriber: string;
  readonly atMs: number;
  readonly batch: string;
  readonly attempt: number;
  readonly events: number;
  readonly status: number | null;
  readonly ms: number;
  readonly code: string | null;
  readonly excerpt: string | null;
}

/** The attempts of a subscriber within a minute. */
export interface SubscriberMinute {
  readonly subscriber: string;
  /** The beginning of the minute. */
  readonly atMs: number;
  /** Events that were accepted. */
  readonly events: number;
  /** Attempts that failed. */
  readonly failed: number;
  /** From the acceptance of these events to that of their receiver: the sum and the longest. */
  readonly latencyMs: number;
  readonly worstMs: number;
}

export interface PageLimits {
  readonly events: number;
  readonly bytes: number;
}

export interface BusStore {
  readState(): Promise<BusState>;
  /** The revisions of all subscribers, oldest first. The state is not newer than they are. */
  readRevisions(): Promise<{ readonly state: BusState; readonly revisions: readonly RevisionRow[] }>;
  /** Events after a number in order, up to another: at least one, if there is any. */
  readPage(after: number, to: number, limits: PageLimits): Promise<BusEvent[]>;
  /** As `readPage`, of some topics. `lookedTo`: there are no others up to this number. */
  readTopics(
    range: { readonly after: number; readonly to: number; readonly topics: readonly number[] },
    limits: PageLimits,
  ): Promise<{ readonly events: BusEvent[]; readonly lookedTo: number }>;
  fanOut(page: FanOut): Promise<FannedOut>;
  /** Only readers that this worker holds. */
  load(held: readonly HeldReader[]): Promise<LoadedReader[]>;
  /** One result for each; undefined: the reader is gone. */
  done(acks: readonly Done[], nowMs: number): Promise<(DoneResult | undefined)[]>;
  /** Whether each had its effect. */
  failed(attempts: readonly Failed[], nowMs: number): Promise<boolean[]>;
  /** Whether each had its effect. */
  cutShort(batches: readonly CutShort[]): Promise<boolean[]>;
  /** Gives an errand back until later. Returns whether it is still held, because more is queued; undefined: it was lost. */
  putBack(
    held: HeldReader,
    until: { readonly runAtMs: number; readonly queued: number; readonly reason: string | null },
  ): Promise<boolean | undefined>;
  /** Ends an errand without work. Returns whether it is still held, because there is work. */
  endIdle(held: HeldReader): Promise<boolean>;
  /** Moves a reader to a change of strands. Returns whether all strands have come there; undefined: it was lost or has moved. */
  reachBarrier(held: HeldReader, from: number, barrier: number): Promise<boolean | undefined>;
  /** Corrects the count of a reader that has no event in a range, although it has some queued. Returns whether it did. */
  recount(
    held: HeldReader,
    range: { readonly from: number; readonly to: number; readonly fanned: number },
  ): Promise<boolean>;
  giveUp(batch: GivenUp, nowMs: number): Promise<boolean>;
  disable(held: HeldReader, reason: string, nowMs: number): Promise<boolean>;
  noteDeliveries(rows: readonly DeliveryRow[]): Promise<void>;
  countMinutes(minutes: readonly SubscriberMinute[]): Promise<void>;
  /** Adds missing errands of readers. Returns how many were missing. */
  mend(): Promise<number>;
}
