/**
 * A tenant's courier (`engine.bus.courier`): fans events out, takes errands and delivers.
 *
 * 1. A pass counts a page of new events, makes due errands ready, and takes as many as there is room for. Passes follow each other
 *    while there is work; then a wake-up, the next due time or a sweep begins the next.
 * 2. A beat names what is held, so that other couriers leave it alone, and tells what was lost.
 * 3. `stop` ends in two phases: batches under way are answered and recorded, then everything is given back.
 */
import type { BusStanding, Courier, CourierContext } from '../../contract/bus.ts';
import { type ErrandQueue, type Errands, errandLimits, errandTimes, type HeldErrand } from '../../errands/contract.ts';
import { postgresErrands } from '../../errands/postgres.ts';
import { Bell } from '../../kernel/bell.ts';
import { warnThrottled } from '../../kernel/log-throttle.ts';
import { all, leftUntil, loop, pause, type Service, within } from '../../kernel/service.ts';
import { type Db, onPool } from '../../kernel/sql.ts';
import { checkpoint } from '../checkpoints.ts';
import { deliverKey } from '../errand-keys.ts';
import { RelayWatch } from '../relay/relay-watch.ts';
import { readStanding } from '../standing.ts';
import { postgresBusStore } from '../postgres/store.ts';
import type { BusStore } from '../store.ts';
import { batchGivenUp, errandsScrubbed } from '../telemetry.ts';
import type { DeliveryParts } from './delivery-parts.ts';
import { DeliveryLog } from './log/delivery-log.ts';
import { makeErrandWork } from './errand-work.ts';
import { GroupedWrites } from './grouped-writes.ts';
import { Holdings } from './holdings.ts';
import { mergeAcks } from './merge-acks.ts';
import { Sender } from './sender.ts';
import { Tail } from './tail.ts';

const courierTimes = {
  /** Between two looks for events and errands without a wake-up, while something is held or was found. */
  sweepMs: 1_000,
  /** The same, without work. */
  idleSweepMs: 30_000,
  /** Between two writes of the delivery log. */
  logMs: 250,
  /** Acknowledgements without a waiter gather for this time. Ten full batches then take one statement instead of four. */
  ackMs: 5,
  /** From one page to the next, so that small groups of events share one: each page is a read, a commit and an answer. */
  pageMs: 4,
  mendMs: 30_000,
  /** An errand whose work failed is tried again after this. */
  failedMs: 2_000,
  /** The part of the time to stop that is kept for recording results and giving errands back. */
  giveBackMs: 1_000,
} as const;

const courierLimits = {
  /** Errands of one tenant that a courier holds. Most of them wait for an answer. */
  maxHeld: 512,
  /** Errands that become ready in one statement. */
  maxDue: 1_000,
} as const;

/** Parts that a test replaces. */
export interface CourierOptions {
  readonly store?: BusStore;
  readonly errands?: Errands;
  readonly random?: () => number;
}

export function makeCourier(ctx: CourierContext, options: CourierOptions = {}): Courier {
  return new TenantCourier(ctx, options);
}

class TenantCourier implements Courier {
  readonly name = 'courier';
  readonly #ctx: CourierContext;
  readonly #db: Db;
  readonly #store: BusStore;
  readonly #errands: Errands;
  readonly #relay: RelayWatch;
  readonly #tail: Tail;
  readonly #holdings: Holdings;
  readonly #log: DeliveryLog;
  readonly #writes: readonly { flush(): Promise<void> }[];
  readonly #bell: Bell;
  readonly #beatBell: Bell;
  readonly #loops: Service;
  /** Aborts writes that wait for the database. */
  readonly #writing = new AbortController();
  #isWoken = true;
  #isQuiet = false;
  #beatAtMs = Number.NEGATIVE_INFINITY;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #scrubbedAtMs = Number.NEGATIVE_INFINITY;
  /** Couriers whose processes are gone, at the last scrub. */
  #knownLost: ReadonlySet<string> = new Set();
  #mendedAtMs = Number.NEGATIVE_INFINITY;
  #workedAtMs = Number.NEGATIVE_INFINITY;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  /** Errands that this courier may hold, so that others have their share. */
  #share: number = courierLimits.maxHeld;
  #nextDueAtMs: number | undefined;
  #fault: unknown;
  #removeListener = (): void => {};

  constructor(ctx: CourierContext, { store, errands, random = Math.random }: CourierOptions) {
    this.#ctx = ctx;
    const db = onPool(ctx.pool);
    this.#db = db;
    this.#store = store ?? postgresBusStore(db, ctx.courier.id);
    this.#errands = errands ?? postgresErrands(db);
    this.#relay = new RelayWatch(db, this.#errands);
    this.#bell = new Bell(ctx.time);
    this.#beatBell = new Bell(ctx.time);
    this.#tail = new Tail({
      store: this.#store,
      now: () => ctx.time.now(),
      onNews: (readers) => {
        if (readers === undefined) this.#holdings.ringAll();
        else for (const reader of readers) this.#holdings.ring(deliverKey(reader));
      },
    });
    const onLogError = warnThrottled(ctx.log, 'delivery log not written');
    this.#log = new DeliveryLog(this.#store, onLogError);
    const parts = this.#makeParts(random);
    this.#writes = [parts.acks, parts.failures, parts.cuts];
    this.#holdings = new Holdings({
      time: ctx.time,
      work: makeErrandWork({ ctx, db, errands: this.#errands, parts }),
      onEnd: (errand, end) => this.#noteEnd(errand, end),
    });
    const onError = warnThrottled(ctx.log, 'courier pass failed');
    this.#loops = all('loops', [
      loop('beats', (signal) => this.#beatPass(signal), warnThrottled(ctx.log, 'courier beat failed')),
      loop(
        'passes',
        (signal) => this.#pass(signal),
        (error) => {
          this.#fault = error;
          onError(error);
        },
      ),
    ]);
  }

  #makeParts(random: () => number): DeliveryParts {
    const { time, log, telemetry, tenant, settings } = this.#ctx;
    const { signal } = this.#writing;
    const onRetry = warnThrottled(log, 'delivery not recorded');
    const grouped = <Item, Answer>(write: (items: readonly Item[]) => Promise<readonly Answer[]>, restMs = 0) =>
      new GroupedWrites({ write, signal, time, restMs, onRetry });
    return {
      store: this.#store,
      tail: this.#tail,
      sender: new Sender(this.#ctx, this.#log),
      acks: grouped(async (acks) => {
        const { merged, indexes } = mergeAcks(acks);
        const results = await this.#store.done(merged, time.now());
        return indexes.map((index) => results[index]);
      }, courierTimes.ackMs),
      failures: grouped((failed) => this.#store.failed(failed, time.now())),
      cuts: grouped((cuts) => this.#store.cutShort(cuts)),
      time,
      random,
      log,
      giveUpMs: settings.bus?.giveUpMs ?? 3 * 24 * 3_600_000,
      onPutBack: (runAtMs) => this.#noteDue(runAtMs),
      onGivenUp: (subscriber, events) => batchGivenUp.emit(telemetry, { tenant: tenant.id, subscriber, events }),
    };
  }

  async start(): Promise<void> {
    this.#tail.open();
    const { hints } = this.#ctx;
    const removers = [
      hints.on('bus', () => this.wake()),
      hints.on('events', () => {
        if (this.#relay.isFollowing) this.wake();
      }),
    ];
    this.#removeListener = () => removers.forEach((remove) => remove());
    await this.#loops.start();
  }

  quiet(): void {
    this.#isQuiet = true;
    this.#holdings.quietAll();
  }

  async stop(deadlineMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.quiet();
    this.#removeListener();
    const waitMs = leftUntil(deadlineMs - courierTimes.giveBackMs);
    const isSettled = await within(
      waitMs,
      this.#holdings.settled().then(() => true),
    );
    if (!isSettled) {
      await this.#giveBackAll();
      this.#holdings.abortAll();
    }
    await within(leftUntil(deadlineMs), Promise.all(this.#writes.map((writes) => writes.flush())));
    this.#writing.abort();
    await this.#log.flush();
    await this.#loops.stop(deadlineMs);
    this.#tail.close();
  }

  wake(): void {
    this.#isWoken = true;
    this.#bell.ring();
  }

  nextDueAt(): number | undefined {
    return this.#nextDueAtMs;
  }

  isIdle(): boolean {
    const nowMs = this.#ctx.time.now();
    const isQuietFor = nowMs - this.#workedAtMs >= courierTimes.sweepMs;
    // a wake-up about the lifecycle log does not start a courier
    if (this.#relay.isFollowing) return false;
    return this.#holdings.size === 0 && !this.#isWoken && isQuietFor && (this.#nextDueAtMs ?? Infinity) > nowMs;
  }

  async probe(): Promise<void> {
    if (this.#fault !== undefined) throw new Error('a pass of the courier failed', { cause: this.#fault });
    await this.#store.readState();
  }

  standing(mostSubscribers: number): Promise<BusStanding> {
    return readStanding(this.#db, mostSubscribers, new Date(this.#ctx.time.now()));
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { time } = this.#ctx;
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    const begunMs = time.now();
    const isMoved = this.#isQuiet ? false : await this.#advance();
    const nowMs = time.now();
    const isDue = (this.#nextDueAtMs ?? Infinity) <= nowMs;
    const isStale = nowMs - this.#lookedAtMs >= courierTimes.sweepMs;
    if (!this.#isQuiet && (isWoken || isDue || isStale)) await this.#look(nowMs);
    this.#fault = undefined;
    if (isMoved || this.#holdings.size > 0) this.#workedAtMs = nowMs;
    if (nowMs - this.#loggedAtMs >= courierTimes.logMs) {
      this.#loggedAtMs = nowMs;
      void this.#log.flush();
    }
    const restMs = courierTimes.pageMs - (nowMs - begunMs);
    if (isMoved && !this.#isQuiet) return restMs > 0 ? pause(restMs, signal) : undefined;
    await this.#bell.wait(this.#pauseMs(), signal);
  }

  #pauseMs(): number {
    const nowMs = this.#ctx.time.now();
    const isAtWork = this.#holdings.size > 0 || nowMs - this.#workedAtMs < courierTimes.sweepMs;
    const sweepMs = isAtWork ? courierTimes.sweepMs : courierTimes.idleSweepMs;
    return Math.min(sweepMs, Math.max(1, (this.#nextDueAtMs ?? Infinity) - nowMs));
  }

  /** Counts one page. Returns whether there was one. */
  async #advance(): Promise<boolean> {
    const { taken, isMoved, nextDueAtMs } = await this.#tail.advance(this.#room());
    if (taken.length > 0) await this.#take('main', taken);
    if (nextDueAtMs !== undefined) this.#noteDue(nextDueAtMs);
    return isMoved;
  }

  /** A courier whose last beat is old takes nothing by fan-out: others would take it for silent. */
  #room(): number {
    const isKnown = this.#ctx.time.now() - this.#beatAtMs < errandTimes.silentMs / 2;
    return isKnown && !this.#isQuiet ? this.#free() : 0;
  }

  #free(): number {
    return Math.max(0, this.#share - this.#holdings.size);
  }

  /** Looks for errands: due ones, ready ones, those of silent couriers. */
  async #look(nowMs: number): Promise<void> {
    this.#lookedAtMs = nowMs;
    const lost = this.#ctx.courier.lost?.() ?? [];
    const isNewlyLost = lost.some((id) => !this.#knownLost.has(id));
    if (isNewlyLost || nowMs - this.#scrubbedAtMs >= errandTimes.scrubMs) await this.#scrub(nowMs, lost);
    if (nowMs - this.#mendedAtMs >= courierTimes.mendMs) {
      this.#mendedAtMs = nowMs;
      const missing = await this.#store.mend();
      if (missing > 0) this.#ctx.log.warn({ errands: missing }, 'missing errands added');
    }
    const relayAtMs = await this.#relay.look(nowMs);
    for (const queue of ['main', 'aux'] as const) {
      if ((await this.#errands.due(queue, nowMs, courierLimits.maxDue)) > 0) checkpoint('couriers.readied');
      await this.#acquire(queue);
    }
    const dues = await Promise.all([this.#errands.nextDue('main'), this.#errands.nextDue('aux')]);
    this.#nextDueAtMs = undefined;
    for (const dueAtMs of [...dues, relayAtMs]) if (dueAtMs !== undefined) this.#noteDue(dueAtMs);
  }

  async #acquire(queue: ErrandQueue): Promise<void> {
    const room = this.#free();
    if (room === 0) return;
    await this.#beatIfOld();
    const taken = await this.#errands.acquire(queue, this.#ctx.courier.id, room, this.#ctx.time.now());
    if (taken.length > 0) checkpoint('delivery.taken');
    await this.#take(queue, taken);
  }

  async #take(queue: ErrandQueue, errands: readonly HeldErrand[]): Promise<void> {
    for (const errand of errands) this.#holdings.take(queue, errand);
    if (errands.length > 0) this.#workedAtMs = this.#ctx.time.now();
    if (this.#isQuiet) this.#holdings.quietAll();
  }

  #noteDue(atMs: number): void {
    if (atMs >= (this.#nextDueAtMs ?? Infinity)) return;
    this.#nextDueAtMs = atMs;
    this.#bell.ring();
  }

  #noteEnd(
    errand: HeldErrand & { readonly queue: ErrandQueue },
    end: 'over' | 'kept' | { readonly error: unknown },
  ): void {
    if (end !== 'over') {
      const isFailed = typeof end === 'object';
      if (isFailed) this.#ctx.log.error({ err: end.error, errand: errand.key }, 'errand failed');
      void this.#giveBack([errand], isFailed ? courierTimes.failedMs : 0);
    }
    // there may be room for one that waits
    if (this.#holdings.size === this.#share - 1) this.wake();
  }

  async #giveBack(held: readonly (HeldErrand & { readonly queue: ErrandQueue })[], delayMs: number): Promise<void> {
    const { courier, time, hints, log } = this.#ctx;
    const runAt = time.now() + delayMs;
    try {
      for (const queue of ['main', 'aux'] as const) {
        const some = held.filter((errand) => errand.queue === queue);
        if (some.length === 0) continue;
        await this.#errands.nack(
          queue,
          courier.id,
          some.map(({ key, lease }) => ({ key, lease, runAt })),
        );
      }
      this.#noteDue(runAt);
      hints.send('bus');
    } catch (error) {
      // not named in the next beat, so they come back without this
      log.warn({ err: error }, 'errands not given back');
    }
  }

  async #giveBackAll(): Promise<void> {
    await this.#giveBack(this.#holdings.named(), 0);
  }

  async #scrub(nowMs: number, lost: readonly string[]): Promise<void> {
    this.#scrubbedAtMs = nowMs;
    this.#knownLost = new Set(lost);
    const { telemetry, tenant } = this.#ctx;
    for (const queue of ['main', 'aux'] as const) {
      const errands = await this.#errands.scrub(queue, nowMs - errandTimes.silentMs, errandLimits.mostLosses, lost);
      if (errands === 0) continue;
      checkpoint('couriers.scrubbed');
      errandsScrubbed.emit(telemetry, { tenant: tenant.id, errands });
    }
  }

  async #beatPass(signal: AbortSignal): Promise<void> {
    if (this.#holdings.size > 0) await this.#beat();
    await this.#log.flush();
    await this.#balance();
    await this.#beatBell.wait(errandTimes.beatMs, signal);
  }

  async #beatIfOld(): Promise<void> {
    if (this.#ctx.time.now() - this.#beatAtMs >= errandTimes.beatMs) await this.#beat();
  }

  async #beat(): Promise<void> {
    const nowMs = this.#ctx.time.now();
    const lost = await this.#errands.beat(this.#ctx.courier.id, this.#holdings.named(), nowMs);
    checkpoint('couriers.beat');
    this.#beatAtMs = nowMs;
    this.#holdings.lose(lost);
  }

  /** Gives back what exceeds this courier's share, if there are others. */
  async #balance(): Promise<void> {
    const others = this.#ctx.courier.others();
    this.#share = courierLimits.maxHeld;
    if (others === 0 || this.#holdings.size <= 2) return;
    const { ready, pending } = await this.#errands.counts('main');
    this.#share = Math.min(courierLimits.maxHeld, Math.ceil((ready + pending) / (others + 1)) + 2);
    if (this.#holdings.size > this.#share) this.#holdings.release(this.#holdings.size - this.#share);
  }
}
