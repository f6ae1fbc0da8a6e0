/** Stores what follows from an answer: the effects of a verdict on the reader. */
import type { OutboundAnswer } from '../../contract/bus.ts';
import { newId } from '../../kernel/id.ts';
import { checkpoint } from '../checkpoints.ts';
import type { BusEvent, HeldReader, LoadedReader } from '../store.ts';
import type { AckWindow } from './ack-window.ts';
import { batchBody, BatchBuilder, batchId } from './batch.ts';
import type { DeliveryParts, Gathered } from './delivery-parts.ts';
import type { Revision } from './subscriptions.ts';
import { describeFailure, judge, type Verdict } from './verdict.ts';

export interface Settled {
  readonly step: 'gather' | 'load' | 'over';
  readonly reader: LoadedReader;
}

type SentBatch = Gathered & { readonly id: string };

export class Settlement {
  readonly #parts: DeliveryParts;
  readonly #held: HeldReader;
  readonly #acks: AckWindow;
  readonly #abort: AbortSignal;

  constructor(parts: DeliveryParts, held: HeldReader, acks: AckWindow, abort: AbortSignal) {
    this.#parts = parts;
    this.#held = held;
    this.#acks = acks;
    this.#abort = abort;
  }

  async settle(reader: LoadedReader, batch: SentBatch, answer: OutboundAnswer): Promise<Settled> {
    const verdict = this.#judge(reader, batch.events, answer);
    if (verdict.kind === 'done') return this.#done(reader, batch);
    if ((await this.#acks.settle()) !== 'held') return { step: 'load', reader };
    if (verdict.kind === 'retry') return this.#retry(reader, verdict);
    if (verdict.kind === 'halve') return this.#halve(reader, batch);
    if (verdict.kind === 'tryNext') return this.#tryNext(reader, batch, answer, verdict);
    if (verdict.kind === 'giveUp') return this.#giveUp(reader, batch, answer, { ...verdict, accepted: undefined });
    await this.#parts.store.disable(this.#held, verdict.reason, this.#parts.time.now());
    checkpoint('delivery.disabled');
    return { step: 'load', reader };
  }

  #judge(reader: LoadedReader, events: readonly BusEvent[], answer: OutboundAnswer): Verdict {
    const { receiver, attempts, failures, firstFailedAtMs } = reader;
    const { health, maxAttempts, lastDeliveredAtMs } = receiver;
    const { time, random, giveUpMs } = this.#parts;
    const nowMs = time.now();
    return judge(
      {
        answer,
        events: events.length,
        firstEventAtMs: events[0]?.atMs ?? nowMs,
        attempts,
        failures,
        firstFailedAtMs,
        health,
        maxAttempts,
        maxAgeMs: receiver.maxAgeMs ?? giveUpMs,
        lastDeliveredAtMs,
      },
      nowMs,
      random,
    );
  }

  /** A full batch is followed by the next one at once, and acknowledged meanwhile. */
  async #done(reader: LoadedReader, batch: SentBatch): Promise<Settled> {
    const { events, nextAtMs } = batch;
    const to = events.at(-1)?.seq ?? reader.pos;
    this.#acks.add({ from: reader.pos, to, events: events.length, batches: 1, nextAtMs });
    const receiver = { ...reader.receiver, lastDeliveredAtMs: this.#parts.time.now() };
    const queued = reader.queued - events.length;
    const reset = { batchEnd: null, attempts: 0, failures: 0, firstFailedAtMs: null };
    const moved = { ...reader, ...reset, receiver, pos: to, queued };
    if (queued > 0 && !this.#acks.isFull) return { step: 'gather', reader: moved };
    const standing = await this.#acks.settle();
    checkpoint('delivery.acked');
    if (standing === 'over') return { step: 'over', reader: moved };
    return { step: standing === 'held' && queued > 0 ? 'gather' : 'load', reader: moved };
  }

  async #retry(reader: LoadedReader, { runAtMs, reason }: { runAtMs: number; reason: string }): Promise<Settled> {
    const isNoted = await this.#parts.failures.add({ ...this.#held, from: reader.pos, runAtMs, reason });
    checkpoint('delivery.failed');
    if (isNoted) this.#parts.onPutBack(runAtMs);
    return { step: 'over', reader };
  }

  async #halve(reader: LoadedReader, { events }: SentBatch): Promise<Settled> {
    const end = events[Math.ceil(events.length / 2) - 1]?.seq ?? reader.pos;
    const isCut = await this.#parts.cuts.add({ ...this.#held, from: reader.pos, end });
    checkpoint('delivery.halved');
    return isCut ? { step: 'gather', reader: { ...reader, batchEnd: end } } : { step: 'load', reader };
  }

  /**
   * One event was refused. If the receiver accepts the next one, the event is at fault and becomes a dead letter; otherwise the
   * receiver is, and both are tried again later.
   */
  async #tryNext(
    reader: LoadedReader,
    batch: SentBatch,
    answer: OutboundAnswer,
    retry: { readonly runAtMs: number; readonly reason: string },
  ): Promise<Settled> {
    const next = await this.#nextEvent(batch);
    if (next === undefined) return this.#retry(reader, retry);
    const { subscriber, strand } = this.#held;
    const { event, revision } = next;
    const id = batchId({ subscriber, strand, revision, events: [event] });
    const sending = { id, subscriber, events: [event], bytes: event.bytes + 2, attempt: 1, replay: null };
    const second = await this.#parts.sender.send(reader.receiver, sending, this.#abort);
    checkpoint('delivery.next');
    const isAccepted = second !== undefined && 'status' in second && second.status >= 200 && second.status < 300;
    if (!isAccepted) return this.#retry(reader, retry);
    return this.#giveUp(reader, batch, answer, { code: 'refused', runAtMs: null, accepted: event });
  }

  /** The reader's event after a batch with its revision, unless strands change before it. */
  async #nextEvent({ events, revision }: SentBatch): Promise<{ event: BusEvent; revision: Revision } | undefined> {
    const { tail } = this.#parts;
    const subscription = tail.subscriptionOf(this.#held.subscriber);
    if (subscription === undefined) return undefined;
    const builder = new BatchBuilder({ subscription, strand: this.#held.strand, batchEnd: null });
    for (let after = events.at(-1)?.seq ?? 0; after < tail.fanned && builder.events.length === 0; ) {
      const page = await tail.read(subscription, after, tail.fanned);
      for (const event of page.events) if (builder.events.length === 0) builder.offer(event);
      after = page.lookedTo;
    }
    const {
      events: [event],
      revision: own,
    } = builder;
    return event !== undefined && own?.barrier === revision.barrier ? { event, revision: own } : undefined;
  }

  async #giveUp(
    reader: LoadedReader,
    { id, events }: SentBatch,
    answer: OutboundAnswer,
    how: { readonly code: string; readonly runAtMs: number | null; readonly accepted: BusEvent | undefined },
  ): Promise<Settled> {
    const { store, time, onGivenUp, onPutBack, log } = this.#parts;
    const last = events.at(-1)?.seq ?? reader.pos;
    const letter = {
      id: newId(time.now()),
      batch: id,
      first: events[0]?.seq ?? last,
      last,
      events: events.length,
      body: batchBody(events),
      code: how.code,
      status: 'status' in answer ? answer.status : null,
      attempts: reader.attempts + 1,
      firstFailedAtMs: reader.firstFailedAtMs ?? time.now(),
    };
    const to = how.accepted?.seq ?? last;
    const sent = how.accepted === undefined ? 0 : 1;
    const { runAtMs } = how;
    const isDone = await store.giveUp({ ...this.#held, from: reader.pos, to, sent, letter, runAtMs }, time.now());
    checkpoint('delivery.dead');
    if (!isDone) return { step: 'load', reader };
    log.warn({ subscriber: reader.receiver.name, batch: id, reason: describeFailure(answer) }, 'batch given up');
    onGivenUp(reader.receiver.name, events.length);
    if (runAtMs === null) return { step: 'load', reader };
    onPutBack(runAtMs);
    return { step: 'over', reader };
  }
}
