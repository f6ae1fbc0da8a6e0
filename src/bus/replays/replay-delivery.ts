/**
 * Delivers a range of the past again, while this courier holds the replay's errand.
 *
 * 1. A replay has its own position and its own attempts. It reads the log by itself, by the subscriber's current terms, and writes
 *    neither to the readers nor to the subscriber's health: ordinary deliveries do not notice it.
 * 2. The end of its range is fixed, so every batch is closed by the log alone. A courier that continues after a crash sends the same
 *    batches under the same ids. Only a halved batch has its end stored.
 * 3. Every step is conditional on the lease, the position and the state: a cancelled replay stops at its next step.
 * 4. An event that the receiver refuses becomes a dead letter, and the replay continues. Other failures are retried; after the
 *    last attempt the replay has failed.
 */
import type { OutboundAnswer } from '../../contract/bus.ts';
import { newId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import { checkpoint } from '../checkpoints.ts';
import { batchBody, BatchBuilder, batchId } from '../delivery/batch.ts';
import type { DeliveryParts } from '../delivery/delivery-parts.ts';
import type { DeliveryEnd, Signals } from '../delivery/strand-delivery.ts';
import { type Subscription, Subscriptions } from '../delivery/subscriptions.ts';
import { tailLimits } from '../delivery/tail.ts';
import { describeFailure } from '../delivery/verdict.ts';
import type { BusEvent } from '../store.ts';
import { LetterReplay } from './letter-replay.ts';
import { isAccepted, judgeReplay, replayTimes } from './judge-replay.ts';
import { type HeldReplay, type LoadedReplay, loadReplay, type ReplayStep, settleReplay } from './queries.ts';

type Step = 'load' | 'over';

export class ReplayDelivery {
  readonly #parts: DeliveryParts;
  readonly #db: Db;
  readonly #held: HeldReplay;
  readonly #signals: Signals;
  #lastSentMs = Number.NEGATIVE_INFINITY;
  /** When the receiver last accepted a batch of this replay. */
  #acceptedAtMs: number | null = null;

  constructor(parts: DeliveryParts, db: Db, held: HeldReplay, signals: Signals) {
    this.#parts = parts;
    this.#db = db;
    this.#held = held;
    this.#signals = signals;
  }

  async run(): Promise<DeliveryEnd> {
    const { quiet, abort } = this.#signals;
    while (!quiet.aborted && !abort.aborted) if ((await this.#next()) === 'over') return 'over';
    return 'kept';
  }

  async #next(): Promise<Step> {
    const replay = await loadReplay(this.#db, this.#held);
    // it is gone: this removes its errand
    if (replay === undefined) return this.#settle('', { from: 0, to: 0 });
    const { subscriber, pos, to, kind, receiver } = replay;
    if (replay.state !== 'running') return this.#settle(subscriber, { from: pos, to: pos });
    if (kind === 'pull') return this.#fail(replay, 'the subscriber pulls its batches now');
    if (!receiver.isActive) return this.#wait(replay, replayTimes.inactiveMs, 'the subscriber is not active');
    if (pos >= to) return this.#settle(subscriber, { from: pos, to: pos, state: 'done' });
    await this.#awaitRate(replay);
    if (this.#signals.quiet.aborted) return 'load';
    return replay.onlyUndelivered ? this.#sendLetter(replay) : this.#sendBatch(replay);
  }

  async #sendLetter(replay: LoadedReplay): Promise<Step> {
    const letters = new LetterReplay(this.#parts.sender, this.#db, this.#held.replay);
    const step = await letters.next(replay, this.#signals.abort, (answer) => this.#judge(replay, 1, answer));
    return step === undefined ? 'load' : this.#settle(replay.subscriber, step);
  }

  async #sendBatch(replay: LoadedReplay): Promise<Step> {
    const { subscriber, pos, to } = replay;
    const builder = await this.#gather(replay, pos, replay.batchEnd);
    if (builder === undefined || builder.events.length === 0)
      // a halved batch without events: retention has dropped them
      return this.#settle(subscriber, {
        from: pos,
        to: replay.batchEnd ?? to,
        ...endOf(replay, replay.batchEnd ?? to),
      });
    const { events, bytes } = builder;
    const answer = await this.#send(replay, events, bytes, replay.attempts + 1);
    if (answer === undefined) return 'load';
    const verdict = this.#judge(replay, events.length, answer);
    const last = events.at(-1)?.seq ?? pos;
    switch (verdict.kind) {
      case 'done': {
        // without a further event in the range, the replay ends with this commit
        const end = builder.next === undefined && replay.batchEnd === null && builder.isRangeEnd ? to : last;
        return this.#settle(subscriber, { from: pos, to: end, sent: events.length, ...endOf(replay, end) });
      }
      case 'halve': {
        const batchEnd = events[Math.ceil(events.length / 2) - 1]?.seq ?? pos;
        return this.#settle(subscriber, { from: pos, to: pos, batchEnd, attempts: replay.attempts });
      }
      case 'skip':
        return this.#skip(replay, events, answer, undefined);
      case 'tryNext':
        return this.#tryNext(replay, events, answer, verdict.step);
      case 'settle':
      default:
        return this.#settle(subscriber, { ...verdict.step, batchEnd: replay.batchEnd });
    }
  }

  /** One event was refused. It is at fault only if the receiver accepts another one. */
  async #tryNext(
    replay: LoadedReplay,
    events: readonly BusEvent[],
    answer: OutboundAnswer,
    retry: ReplayStep,
  ): Promise<Step> {
    const builder = await this.#gather(replay, events.at(-1)?.seq ?? replay.pos, null);
    const next = builder?.events[0];
    const second = next && (await this.#send(replay, [next], next.bytes + 2, 1));
    if (second !== undefined && isAccepted(second)) return this.#skip(replay, events, answer, next);
    return this.#settle(replay.subscriber, { ...retry, batchEnd: replay.batchEnd });
  }

  /** Sets a refused event aside, and goes on after it, or after the next one if that was accepted on its own. */
  #skip(
    replay: LoadedReplay,
    events: readonly BusEvent[],
    answer: OutboundAnswer,
    accepted: BusEvent | undefined,
  ): Promise<Step> {
    const { subscriber, pos, attempts } = replay;
    const first = events[0]?.seq ?? pos;
    const last = events.at(-1)?.seq ?? pos;
    const end = accepted?.seq ?? last;
    const refused = {
      id: newId(),
      batch: this.#idOf(replay, events),
      first,
      last,
      events: events.length,
      body: batchBody(events),
      code: 'refused',
      status: 'status' in answer ? answer.status : null,
      attempts: attempts + 1,
      firstFailedAtMs: null,
    };
    this.#parts.onGivenUp(replay.receiver.name, events.length);
    return this.#settle(subscriber, { from: pos, to: end, sent: accepted ? 1 : 0, refused, ...endOf(replay, end) });
  }

  /** Gathers the batch after a number; undefined: the subscriber has no topics. */
  async #gather(replay: LoadedReplay, after: number, batchEnd: number | null) {
    const subscription = subscriptionOf(replay);
    if (subscription === undefined) return undefined;
    const topics = [...(subscription.revisions[0]?.topics ?? [])];
    const builder = new BatchBuilder({ subscription, strand: undefined, batchEnd });
    const end = batchEnd ?? replay.to;
    let isMore = topics.length > 0;
    for (let from = after; isMore && from < end; ) {
      const page = await this.#parts.store.readTopics({ after: from, to: end, topics }, tailLimits.ownPage);
      isMore = await builder.offerAll(page.events);
      from = page.lookedTo;
    }
    const { events, bytes, next } = builder;
    return { events, bytes, next, isRangeEnd: isMore };
  }

  #idOf({ subscriber, revision }: LoadedReplay, events: readonly BusEvent[]): string {
    if (revision === undefined) throw new Error('a replayed batch has no revision');
    return batchId({ subscriber, strand: undefined, revision, events });
  }

  async #send(replay: LoadedReplay, events: readonly BusEvent[], bytes: number, attempt: number) {
    const { subscriber, receiver } = replay;
    const batch = { id: this.#idOf(replay, events), subscriber, events, bytes, attempt, replay: this.#held.replay };
    const answer = await this.#parts.sender.send(receiver, batch, this.#signals.abort);
    checkpoint('replay.sent');
    return answer;
  }

  #judge(replay: LoadedReplay, events: number, answer: OutboundAnswer) {
    const { time, random, giveUpMs } = this.#parts;
    const verdict = judgeReplay(
      replay,
      { answer, events, acceptedAtMs: this.#acceptedAtMs, giveUpMs },
      time.now(),
      random,
    );
    if (verdict.kind === 'done') this.#acceptedAtMs = time.now();
    else
      this.#parts.log.debug(
        { replay: this.#held.replay, reason: describeFailure(answer) },
        'replayed batch not accepted',
      );
    return verdict;
  }

  #fail(replay: LoadedReplay, reason: string): Promise<Step> {
    return this.#settle(replay.subscriber, { from: replay.pos, to: replay.pos, state: 'failed', reason });
  }

  #wait({ subscriber, pos, batchEnd, attempts }: LoadedReplay, ms: number, reason: string): Promise<Step> {
    const runAtMs = this.#parts.time.now() + ms;
    return this.#settle(subscriber, { from: pos, to: pos, batchEnd, attempts, runAtMs, reason });
  }

  async #settle(subscriber: string, step: ReplayStep): Promise<Step> {
    const { time, onPutBack } = this.#parts;
    const result = await settleReplay(this.#db, this.#held, subscriber, step, time.now());
    checkpoint('replay.settled');
    if (result !== 'over') return 'load';
    if (step.runAtMs !== undefined) onPutBack(step.runAtMs);
    return 'over';
  }

  async #awaitRate({ receiver }: LoadedReplay): Promise<void> {
    const { time } = this.#parts;
    if (receiver.rate !== null) {
      const earliestMs = this.#lastSentMs + 1_000 / receiver.rate;
      if (earliestMs > time.now()) await time.until(earliestMs, this.#signals.quiet);
    }
    this.#lastSentMs = time.now();
  }
}

/** The current terms, as if they had always been in force. */
function subscriptionOf({ subscriber, revision }: LoadedReplay): Subscription | undefined {
  return revision && new Subscriptions(0, [{ ...revision, fromSeq: -1 }]).of(subscriber);
}

function endOf({ to }: LoadedReplay, pos: number): { readonly state?: 'done' } {
  return pos >= to ? { state: 'done' } : {};
}
