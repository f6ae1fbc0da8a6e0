/**
 * Delivers to one strand of a subscriber while this courier holds its errand.
 *
 * Its states, from one batch to the next:
 *
 * | state | leaves when |
 * |---|---|
 * | load | the reader's row is read. Without work the errand ends |
 * | gather | the events after the position are read. An open batch waits for more, or for its window |
 * | close | a batch that is not full has its end stored |
 * | send | an answer has come. One batch at a time, so the order holds |
 * | settle | the verdict is stored: done, retry, halve, give up, disable |
 *
 * 1. A batch is sent only if every courier would send the same events under its id (see batch.ts).
 * 2. An accepted batch that was full may be acknowledged while the next one is under way: whoever continues after a crash sends
 *    the same batches again, under the same ids.
 * 3. Every write is conditional on the lease and the position. After a refused write the reader is loaded again, or left alone.
 */
import type { Bell } from '../../kernel/bell.ts';
import { checkpoint } from '../checkpoints.ts';
import type { HeldReader, LoadedReader } from '../store.ts';
import { BatchBuilder, batchId, closesAtMs } from './batch.ts';
import { AckWindow } from './ack-window.ts';
import type { DeliveryParts, Gathered } from './delivery-parts.ts';
import { OwnPage } from './own-page.ts';
import { Settlement } from './settlement.ts';
import type { Revision, Subscription } from './subscriptions.ts';

const deliveryTimes = {
  /** An open batch is held in memory for so long; if its window ends later, its errand waits in the store. */
  holdMs: 1_000,
  /** Between two looks whether all strands have reached a change. */
  barrierMs: 100,
  /** Between two looks of a strand that lets another one try a failing receiver. */
  behindMs: 5_000,
} as const;

/** `over`: the errand is gone, put back or lost. `kept`: it is still held. */
export type DeliveryEnd = 'over' | 'kept';

export interface Signals {
  /** No further batch is begun. */
  readonly quiet: AbortSignal;
  /** The delivery under way is given up: the lease is lost, or time is over. */
  readonly abort: AbortSignal;
}

export class StrandDelivery {
  readonly held: HeldReader;
  readonly #parts: DeliveryParts;
  readonly #signals: Signals;
  /** Rung when events were counted for this reader. */
  readonly #bell: Bell;
  readonly #acks: AckWindow;
  readonly #settlement: Settlement;
  readonly #ownPage = new OwnPage();
  #reader: LoadedReader | undefined;
  #lastSentMs = Number.NEGATIVE_INFINITY;

  constructor(parts: DeliveryParts, held: HeldReader, signals: Signals, bell: Bell) {
    this.#parts = parts;
    this.held = held;
    this.#signals = signals;
    this.#bell = bell;
    this.#acks = new AckWindow(parts.acks, held);
    this.#settlement = new Settlement(parts, held, this.#acks, signals.abort);
  }

  async run(): Promise<DeliveryEnd> {
    const { quiet, abort } = this.#signals;
    let step: 'load' | 'gather' | 'over' = 'load';
    while (step !== 'over' && !quiet.aborted && !abort.aborted)
      step = step === 'load' ? await this.#load() : await this.#deliverNext();
    if (step === 'over') return 'over';
    return (await this.#acks.settle()) === 'over' ? 'over' : 'kept';
  }

  async #load(): Promise<'load' | 'gather' | 'over'> {
    const { store, tail, time } = this.#parts;
    if ((await this.#acks.settle()) === 'over') return 'over';
    this.#ownPage.forget();
    const [reader] = await store.load([this.held]);
    if (reader === undefined || !reader.receiver.isActive || reader.queued === 0) return this.#endIdle();
    checkpoint('delivery.loaded');
    await tail.ensure(reader.state);
    this.#reader = reader;
    if (!reader.isBehindOther) return 'gather';
    return this.#putBack(reader, time.now() + deliveryTimes.behindMs, 'the receiver fails: another strand tries it');
  }

  async #endIdle(): Promise<'load' | 'over'> {
    const isHeld = await this.#parts.store.endIdle(this.held);
    checkpoint('delivery.idle');
    return isHeld ? 'load' : 'over';
  }

  async #deliverNext(): Promise<'load' | 'gather' | 'over'> {
    const reader = this.#reader;
    const subscription = this.#parts.tail.subscriptionOf(this.held.subscriber);
    if (reader === undefined || subscription === undefined) return 'load';
    const batch = await this.#gather(reader, subscription);
    if (batch === undefined) return this.#findNothing(reader);
    checkpoint('delivery.gathered');
    if (batch.revision.barrier >= reader.pos) {
      const step = await this.#passBarrier(reader, batch.revision.barrier);
      if (step !== 'send') return step;
    }
    const step = batch.isClosed ? 'send' : await this.#close(reader, batch);
    return step === 'send' ? this.#send(batch) : step;
  }

  async #gather(reader: LoadedReader, subscription: Subscription): Promise<Gathered | undefined> {
    const { tail } = this.#parts;
    const { pos, batchEnd } = reader;
    const builder = new BatchBuilder({ subscription, strand: this.held.strand, batchEnd });
    const to = batchEnd ?? tail.fanned;
    let isMore = true;
    for (let after = pos; isMore && after < to && !builder.isClosed; ) {
      const from = after;
      const read = () => tail.read(subscription, from, to);
      const page = await (tail.isNear(from) ? read() : this.#ownPage.after(subscription, from, to, read));
      isMore = await builder.offerAll(page.events);
      after = page.lookedTo;
    }
    builder.noteEnd(to);
    const { events, bytes, revision, isClosed } = builder;
    return revision && { events, bytes, revision, isClosed, nextAtMs: builder.next?.atMs ?? null };
  }

  /** The count says that there are events, and there are none: more was counted than this courier knows, or rows were lost. */
  async #findNothing(reader: LoadedReader): Promise<'load' | 'over'> {
    const { store, log, tail } = this.#parts;
    if ((await this.#acks.settle()) !== 'held') return 'load';
    const state = await store.readState();
    if (state.fanned > tail.fanned) return 'load';
    const { pos, queued, batchEnd } = reader;
    const isMended = await store.recount(this.held, { from: pos, to: batchEnd ?? state.fanned, fanned: state.fanned });
    if (isMended) log.error({ ...this.held, pos, queued }, 'events missing from the bus log');
    return 'load';
  }

  /** Events after the barrier belong to other strands than before it: no strand continues until all have reached it. */
  async #passBarrier(reader: LoadedReader, barrier: number): Promise<'send' | 'load' | 'over'> {
    if ((await this.#acks.settle()) !== 'held') return 'load';
    const isPassed = await this.#parts.store.reachBarrier(this.held, reader.pos, barrier);
    checkpoint('delivery.barrier');
    if (isPassed === undefined) return 'load';
    const moved = { ...reader, pos: barrier };
    this.#reader = moved;
    if (isPassed) return 'send';
    return this.#putBack(moved, this.#parts.time.now() + deliveryTimes.barrierMs, 'other strands must come first');
  }

  /** Stores the end of an open batch whose window is over. Before that, it waits for the window, or for more events. */
  async #close(reader: LoadedReader, batch: Gathered): Promise<'send' | 'load' | 'gather' | 'over'> {
    const { time, cuts } = this.#parts;
    if ((await this.#acks.settle()) !== 'held') return 'load';
    const waitMs = closesAtMs(batch.events, batch.revision) - time.now();
    if (waitMs > deliveryTimes.holdMs) return this.#putBack(reader, time.now() + waitMs, null);
    if (waitMs > 0) {
      await this.#bell.wait(waitMs, this.#signals.quiet);
      return 'gather';
    }
    const from = this.#reader?.pos ?? reader.pos;
    const end = batch.events.at(-1)?.seq ?? from;
    const isCut = await cuts.add({ ...this.held, from, end });
    checkpoint('delivery.closed');
    if (!isCut) return 'load';
    this.#reader = { ...(this.#reader ?? reader), batchEnd: end };
    return 'send';
  }

  async #putBack(reader: LoadedReader, runAtMs: number, reason: string | null): Promise<'load' | 'over'> {
    const isHeld = await this.#parts.store.putBack(this.held, { runAtMs, queued: reader.queued, reason });
    checkpoint('delivery.back');
    if (isHeld) return 'load';
    this.#parts.onPutBack(runAtMs);
    return 'over';
  }

  async #send(batch: Gathered): Promise<'load' | 'gather' | 'over'> {
    const { quiet, abort } = this.#signals;
    const reader = this.#reader;
    if (reader === undefined) return 'load';
    const { events, bytes, revision } = batch;
    await this.#awaitRate(reader, revision);
    if (quiet.aborted) return 'gather';
    const id = batchId({ ...this.held, revision, events });
    const attempt = reader.attempts + 1;
    const sending = { id, subscriber: this.held.subscriber, events, bytes, attempt, replay: null };
    const answer = await this.#parts.sender.send(reader.receiver, sending, abort);
    checkpoint('delivery.sent');
    if (answer === undefined) return 'load';
    const settled = await this.#settlement.settle(reader, { ...batch, id }, answer);
    this.#reader = settled.reader;
    return settled.step;
  }

  /** The strands of a subscriber share its rate. */
  async #awaitRate({ receiver }: LoadedReader, { strands }: Revision): Promise<void> {
    const { time } = this.#parts;
    if (receiver.rate !== null) {
      const earliestMs = this.#lastSentMs + (1_000 * strands) / receiver.rate;
      if (earliestMs > time.now()) await time.until(earliestMs, this.#signals.quiet);
    }
    this.#lastSentMs = time.now();
  }
}
