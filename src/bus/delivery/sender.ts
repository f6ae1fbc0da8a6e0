/** Sends batches and notes each attempt: delivery log, telemetry. Knows nothing of positions. */
import type { CourierContext, OutboundAnswer } from '../../contract/bus.ts';
import { batchSent } from '../telemetry.ts';
import type { BusEvent, DeliveryRow, Receiver } from '../store.ts';
import { batchBody } from './batch.ts';
import { batchMemory } from './body-memory.ts';
import type { DeliveryLog } from './log/delivery-log.ts';
import { makeRequest } from './request.ts';

export interface Batch {
  readonly id: string;
  readonly subscriber: string;
  readonly events: readonly BusEvent[];
  readonly bytes: number;
  /** 1 is the first. */
  readonly attempt: number;
  /** The id of the replay that sends it; null: an ordinary delivery. */
  readonly replay: string | null;
}

/** A batch whose body is finished already. */
export interface FinishedBatch extends Omit<Batch, 'events'> {
  readonly body: string;
  readonly count: number;
}

export class Sender {
  readonly #ctx: CourierContext;
  readonly #log: DeliveryLog;

  constructor(ctx: CourierContext, log: DeliveryLog) {
    this.#ctx = ctx;
    this.#log = log;
  }

  /** Undefined: the signal aborted before an answer came. Whether the receiver has the batch is then not known. */
  async send(
    receiver: Receiver,
    batch: Batch | FinishedBatch,
    signal: AbortSignal,
  ): Promise<OutboundAnswer | undefined> {
    const answer = await this.post(receiver, batch, signal);
    if (answer !== undefined) this.#note(receiver, batch, answer);
    return answer;
  }

  /** As `send`, without a note of the attempt. */
  async post(
    receiver: Receiver,
    batch: Batch | FinishedBatch,
    signal: AbortSignal,
  ): Promise<OutboundAnswer | undefined> {
    const share = await batchMemory.take(batch.bytes);
    try {
      if (signal.aborted) return undefined;
      const { time, outbound, secrets } = this.#ctx;
      const body = Buffer.from('body' in batch ? batch.body : batchBody(batch.events));
      const { id, attempt, replay } = batch;
      const request = makeRequest(receiver, { batch: id, body, attempt, replay, nowMs: time.now() }, secrets);
      const answer = await outbound.post(request, signal);
      return signal.aborted && !('status' in answer) ? undefined : answer;
    } finally {
      share.release();
    }
  }

  #note(receiver: Receiver, batch: Batch | FinishedBatch, answer: OutboundAnswer): void {
    const nowMs = this.#ctx.time.now();
    const status = 'status' in answer ? answer.status : null;
    const isSuccess = status !== null && status >= 200 && status < 300;
    // the age of a replayed event says nothing about the bus
    const timed = isSuccess && batch.replay === null && 'events' in batch ? batch.events : [];
    const latencyMs = timed.map((event) => Math.max(0, nowMs - event.atMs));
    this.#log.note(deliveryRow(batch, answer, nowMs), isSuccess, latencyMs);
    batchSent.emit(this.#ctx.telemetry, {
      tenant: this.#ctx.tenant.id,
      subscriber: receiver.name,
      status: 'status' in answer ? `${Math.floor(answer.status / 100)}xx` : answer.code,
      events: countOf(batch),
      ms: answer.ms,
      latencyMs,
    });
  }
}

function countOf(batch: Batch | FinishedBatch): number {
  return 'body' in batch ? batch.count : batch.events.length;
}

/** An attempt as the delivery log keeps it. */
export function deliveryRow(batch: Batch | FinishedBatch, answer: OutboundAnswer, nowMs: number): DeliveryRow {
  const hasStatus = 'status' in answer;
  return {
    subscriber: batch.subscriber,
    atMs: nowMs,
    batch: batch.id,
    attempt: batch.attempt,
    events: countOf(batch),
    status: hasStatus ? answer.status : null,
    ms: answer.ms,
    code: hasStatus ? null : answer.code,
    excerpt: storable(hasStatus ? answer.excerpt : answer.detail),
  };
}

/** PostgreSQL stores no zero characters. */
function storable(text: string): string {
  return text.replaceAll('\0', '').slice(0, 1_000);
}
