/**
 * Pull: hands out the batches of a subscriber of kind `pull`, under the ids and from the positions that a courier would use, so a
 * subscriber can change between push and pull without losing an event.
 *
 * 1. A batch is handed out to one consumer at a time. It belongs to the consumer until its lease ends; then it is handed out
 *    again, under the same id and with the same events.
 * 2. A batch that is not full is handed out when its window is over. Its end is stored before.
 * 3. An acknowledgement names the batch. It counts once, whoever sends it: the events were processed.
 * 4. Every write is conditional on the position, so of two consumers that take the same batch one gets nothing.
 * 5. A batch that was handed out `max_attempts` times without an acknowledgement becomes a dead letter.
 */
import { newId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import { batchBody, BatchBuilder, batchId, closesAtMs } from '../delivery/batch.ts';
import { SuccessSampling } from '../success-sampling.ts';
import { type Revision, type Subscription, Subscriptions, topicsAfter } from '../delivery/subscriptions.ts';
import { readTopics } from '../postgres/log-queries.ts';
import type { BusEvent } from '../store.ts';
import type { BusContext } from './context.ts';
import { leaseBatch, type PulledReader, readPulled, setAside } from './pull-queries.ts';
import type { Subscriber } from './queries.ts';

export const pullLeaseMs = 30_000;

/** The delivery log of a fast consumer is bounded as that of a receiver. By the pool, so one for each tenant of this process. */
const samplings = new WeakMap<object, SuccessSampling>();

export function samplingOf({ pool }: BusContext): SuccessSampling {
  const known = samplings.get(pool) ?? new SuccessSampling();
  samplings.set(pool, known);
  return known;
}

/** One page of the log, while a batch is gathered. */
const pageLimits = { events: 1_000, bytes: 256 * 1024 };
/** A batch is in memory until its consumer has read it, however slow that is. */
const maxPulledBytes = 4 * 1024 * 1024;

export interface PulledBatch {
  readonly id: string;
  readonly lease: number;
  readonly until: Date;
  /** The events as a JSON array. */
  readonly events: string;
}

export type Taken = PulledBatch | { readonly nextAtMs: number | undefined };

interface Gathered {
  readonly events: readonly BusEvent[];
  readonly isClosed: boolean;
  /** When a batch that is open may be closed. */
  readonly closesAtMs: number;
  readonly revision: Revision;
}

/** The next batch of any strand; else when there may be one. */
export async function takeBatch(ctx: BusContext, subscriber: Subscriber): Promise<Taken> {
  const { fanned, revision, revisions, readers } = await readPulled(ctx.db, subscriber.id);
  const subscription = new Subscriptions(revision, revisions).of(subscriber.id);
  let nextAtMs: number | undefined;
  for (const reader of subscription === undefined ? [] : readers) {
    const taken = await takeFrom(ctx, subscriber, { reader, readers, subscription, fanned });
    if (taken !== undefined && 'id' in taken) return taken;
    const at = taken?.nextAtMs;
    if (at !== undefined) nextAtMs = Math.min(at, nextAtMs ?? at);
  }
  return { nextAtMs };
}

interface Standing {
  readonly reader: PulledReader;
  readonly readers: readonly PulledReader[];
  readonly subscription: Subscription | undefined;
  readonly fanned: number;
}

async function takeFrom(ctx: BusContext, subscriber: Subscriber, standing: Standing): Promise<Taken | undefined> {
  const { reader, readers, subscription, fanned } = standing;
  const now = ctx.time.now();
  if (reader.queued === 0 || subscription === undefined) return undefined;
  if (reader.leased_until !== null && reader.leased_until.getTime() > now) {
    return { nextAtMs: reader.leased_until.getTime() };
  }
  const batch = await gather(ctx.db, subscription, reader, fanned);
  if (batch === undefined) return undefined;
  // events of one key may change strands at a barrier: no strand continues until all have come there
  const isHeldUp = readers.some((other) => other !== reader && other.pos < batch.revision.barrier && other.queued > 0);
  if (batch.revision.barrier >= reader.pos && isHeldUp) return undefined;
  if (!batch.isClosed && batch.closesAtMs > now) return { nextAtMs: batch.closesAtMs };
  if (subscriber.max_attempts !== null && reader.attempts >= subscriber.max_attempts) {
    await giveUp(ctx, subscriber, reader, batch);
    return { nextAtMs: now };
  }
  return lease(ctx, subscriber, reader, batch);
}

async function gather(
  db: Db,
  subscription: Subscription,
  { pos, strand, batch_end: batchEnd }: PulledReader,
  fanned: number,
): Promise<Gathered | undefined> {
  const builder = new BatchBuilder({ subscription, strand, batchEnd, maxBytes: maxPulledBytes });
  const to = batchEnd ?? fanned;
  const topics = topicsAfter(subscription, pos);
  let isMore = true;
  for (let after = pos; isMore && after < to && !builder.isClosed; ) {
    const page = await readTopics(db, { after, to, topics }, pageLimits);
    isMore = await builder.offerAll(page.events);
    after = page.lookedTo;
  }
  builder.noteEnd(to);
  const { events, revision, isClosed } = builder;
  if (revision === undefined) return undefined;
  return { events, isClosed, closesAtMs: closesAtMs(events, revision), revision };
}

async function lease(
  ctx: BusContext,
  subscriber: Subscriber,
  reader: PulledReader,
  { events, revision }: Gathered,
): Promise<Taken | undefined> {
  const now = ctx.time.now();
  const id = batchId({ subscriber: subscriber.id, strand: reader.strand, revision, events });
  const until = new Date(now + pullLeaseMs);
  const end = events.at(-1)?.seq ?? reader.pos;
  const attempt = await leaseBatch(ctx.db, subscriber.id, reader, {
    id,
    end,
    events: events.length,
    until,
    now: new Date(now),
    isLogged: samplingOf(ctx).takes(now),
  });
  // another consumer was faster: look again
  if (attempt === undefined) return { nextAtMs: now };
  return { id, lease: attempt, until, events: batchBody(events) };
}

async function giveUp(
  ctx: BusContext,
  subscriber: Subscriber,
  reader: PulledReader,
  { events, revision }: Gathered,
): Promise<void> {
  await setAside(ctx.db, subscriber.id, reader, {
    id: newId(),
    batch: batchId({ subscriber: subscriber.id, strand: reader.strand, revision, events }),
    first: events[0]?.seq ?? reader.pos,
    last: events.at(-1)?.seq ?? reader.pos,
    events: events.length,
    body: batchBody(events),
    at: new Date(ctx.time.now()),
  });
}
