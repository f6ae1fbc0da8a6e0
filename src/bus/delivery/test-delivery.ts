/**
 * A test delivery: one event of the type `noop`, to show whether a receiver answers.
 *
 * It moves no position and changes nothing about the subscriber's health. The result is a row of the delivery log, whatever it is.
 * If the courier dies after sending, another one sends a test again.
 */
import type { CourierContext, OutboundAnswer } from '../../contract/bus.ts';
import type { Errands, HeldErrand } from '../../errands/contract.ts';
import { newId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import { checkpoint } from '../checkpoints.ts';
import { findReceiver } from '../postgres/reader-queries.ts';
import type { BusEvent } from '../store.ts';
import type { DeliveryParts } from './delivery-parts.ts';
import { type Batch, deliveryRow } from './sender.ts';
import type { DeliveryEnd, Signals } from './strand-delivery.ts';

interface TestParts {
  readonly ctx: CourierContext;
  readonly db: Db;
  readonly errands: Errands;
  readonly parts: DeliveryParts;
}

interface TestErrand extends HeldErrand {
  readonly subscriber: string;
}

export async function deliverTest(
  { ctx, db, errands, parts }: TestParts,
  { key, lease, subscriber }: TestErrand,
  signals: Signals,
): Promise<DeliveryEnd> {
  const receiver = await findReceiver(db, subscriber);
  if (receiver !== undefined) {
    const batch = testBatch(subscriber, ctx.time.now());
    const answer = await parts.sender.post(receiver, batch, signals.abort).catch(unsent);
    checkpoint('test.sent');
    if (answer === undefined) return 'kept';
    // not by the log of deliveries, which leaves out successes if there are many
    await parts.store.noteDeliveries([deliveryRow(batch, answer, ctx.time.now())]);
    checkpoint('test.noted');
  }
  await errands.ack('aux', ctx.courier.id, [{ key, lease }]);
  return 'over';
}

/** The request could not be made, for example because a secret cannot be decrypted. */
function unsent(error: unknown): OutboundAnswer {
  return { code: 'connect', detail: `not sent: ${error instanceof Error ? error.message : String(error)}`, ms: 0 };
}

function testBatch(subscriber: string, nowMs: number): Batch {
  const id = `test_${newId()}`;
  const url = `https://millrace.invalid/test/${subscriber}`;
  const body = JSON.stringify({ topic: 'millrace_test', type: 'noop', url, t: Math.floor(nowMs), id: '0' });
  const bytes = Buffer.byteLength(body);
  const event: BusEvent = { seq: 0, topicId: 0, keyHash: 0, target: subscriber, atMs: nowMs, body, bytes };
  return { id, subscriber, events: [event], bytes, attempt: 1, replay: null };
}
