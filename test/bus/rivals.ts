/**
 * Several couriers on one tenant, of which some die, freeze or are slow, while subscriptions change, pause and resume, receivers
 * fail, and publishers repeat what was not answered. The oracle says what must hold meanwhile and in the end.
 *
 * Now and then the answer of a call is lost after its commit, as with a connection that ends: the courier must repeat the call, or
 * look again.
 *
 * Time is moved by hand. A frozen or slow call of the store continues when a later round begins, so no test waits for a clock.
 */
import { pauseSubscriber, resumeSubscriber } from '../../src/bus/subscribers/control.ts';
import { postgresBusStore } from '../../src/bus/postgres/store.ts';
import type { BusStore } from '../../src/bus/store.ts';
import type { Courier } from '../../src/contract/bus.ts';
import { type Errands } from '../../src/errands/contract.ts';
import { postgresErrands } from '../../src/errands/postgres.ts';
import { newId } from '../../src/kernel/id.ts';
import { deadlineIn } from '../../src/kernel/service.ts';
import { type Db, onPool, sql } from '../../src/kernel/sql.ts';
import { TestBus } from '../harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { HandTime } from '../harness/hand-time.ts';
import { until } from '../harness/until.ts';
import { Random } from '../simulation/random.ts';
import { RivalsOracle } from './rivals-oracle.ts';
import { makeTopics, RivalsPublisher, type StoredEvent } from './rivals-publisher.ts';

export interface Rivalry {
  readonly faults: readonly string[];
  readonly kills: number;
  readonly freezes: number;
  readonly changes: number;
  /** Pauses of a subscriber that resumed later. */
  readonly pauses: number;
  /** Moves of a subscriber to another position. */
  readonly moves: number;
  /** Answers that were lost after their commit. */
  readonly lostAnswers: number;
  /** Writes under a lost lease that had no effect. */
  readonly refused: number;
}

const rounds = 40;
/** Writes about a reader that a courier makes under a lease. */
const writes: ReadonlySet<string> = new Set(['done', 'failed', 'cutShort', 'putBack', 'endIdle', 'reachBarrier']);
const maxDrainMs = 20_000;
/** Of the answers of calls of the store and of the errands. */
const lostAnswers = 0.02;

interface Subscriber {
  readonly id: string;
  readonly path: string;
  /** Several strands at times. */
  readonly isWide: boolean;
  /** Indexes of topics. */
  topics: readonly number[];
  isPaused: boolean;
  /** It is moved back and ahead: events may arrive again, and in other batches. Undefined: never. */
  moves: Moves | undefined;
  readonly expected: Map<number, string | number>;
}

interface Moves {
  /** The number of its last position. */
  readonly from: number;
  /** The requests of all subscribers before that. */
  readonly requests: number;
}

interface MortalCourier {
  readonly id: string;
  readonly courier: Courier;
  readonly kill: () => void;
  /** It freezes with its next write about a reader. Returns whether it has. */
  readonly freezeAtWrite: () => () => boolean;
  readonly thaw: () => void;
}

export async function runRivals(seed: number, breakRule: (db: Db) => Promise<void> = async () => {}): Promise<Rivalry> {
  const world = await TestBus.make(new HandTime('2026-11-18T00:00:00Z'));
  const receiver = await makeBusReceiver();
  const rivals = new Rivals(seed, world, receiver);
  try {
    await breakRule(world.db);
    return await rivals.run();
  } finally {
    await rivals.stop();
    await world.close();
    await receiver.close();
  }
}

interface Latch {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

function makeLatch(): Latch {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

function expectEvents({ topics, isWide, expected }: Subscriber, events: readonly StoredEvent[]): void {
  for (const { seq, topic, key } of events) if (topics.includes(topic)) expected.set(seq, isWide ? key : 'all');
}

class Rivals {
  readonly #random: Random;
  readonly #world: TestBus;
  readonly #receiver: BusReceiver;
  readonly #oracle = new RivalsOracle();
  readonly #publisher: RivalsPublisher;
  readonly #subscribers: Subscriber[] = [];
  readonly #stored: StoredEvent[] = [];
  readonly #running = new Set<Courier>();
  #couriers: MortalCourier[] = [];
  #isDraining = false;
  #round = makeLatch();
  #thawing: { readonly thaw: () => void; rounds: number }[] = [];
  #topicIds: readonly number[] = [];
  #kills = 0;
  #freezes = 0;
  #changes = 0;
  #pauses = 0;
  #moves = 0;
  #lostAnswers = 0;

  constructor(seed: number, world: TestBus, receiver: BusReceiver) {
    this.#random = new Random(`rivals ${seed}`);
    this.#world = world;
    this.#receiver = receiver;
    this.#publisher = new RivalsPublisher(world.ctx, this.#random, (fault) => this.#oracle.note(fault));
    receiver.reply = () => (this.#random.chance(0.15) ? this.#random.pick([500, 'reset', 503] as const) : 204);
  }

  get #time(): HandTime {
    return this.#world.time as HandTime;
  }

  async run(): Promise<Rivalry> {
    this.#topicIds = await makeTopics(this.#world.db);
    for (let i = 0; i < 5; i++) await this.#subscribe(i);
    for (let i = 0; i < 3; i++) await this.#startCourier();
    for (let round = 0; round < rounds && this.#oracle.faults.length === 0; round++) await this.#playRound();
    await this.#drain();
    const { faults, refused } = this.#oracle;
    return {
      faults,
      refused,
      kills: this.#kills,
      freezes: this.#freezes,
      changes: this.#changes,
      pauses: this.#pauses,
      moves: this.#moves,
      lostAnswers: this.#lostAnswers,
    };
  }

  async stop(): Promise<void> {
    this.#continueAll();
    await Promise.all([...this.#running].map((courier) => courier.stop(deadlineIn(3_000))));
  }

  async #subscribe(i: number): Promise<void> {
    const isMoved = i === 4;
    const topics = isMoved ? [0, 1] : [i % 2];
    const path = `/${i}`;
    const isWide = i === 3;
    const limits = { max: this.#random.int(1, 9), windowMs: 50 * i, strands: isWide ? 3 : 1 };
    const callback = `${this.#receiver.url}${path}`;
    const id = await this.#world.subscribe({ callback, topics: this.#idsOf(topics), ...limits });
    this.#subscribers.push({
      id,
      path,
      isWide,
      topics,
      isPaused: false,
      moves: isMoved ? { from: 0, requests: 0 } : undefined,
      expected: new Map(),
    });
  }

  #idsOf(topics: readonly number[]): number[] {
    return topics.map((topic) => this.#topicIds[topic] ?? 0);
  }

  async #playRound(): Promise<void> {
    const random = this.#random;
    await this.#publish();
    // a change of strands is rare, and the most delicate one
    const changed = random.pick(
      random.chance(0.5) ? this.#subscribers : this.#subscribers.filter(({ isWide }) => isWide),
    );
    if (random.chance(0.25)) await this.#change(changed);
    if (random.chance(0.1)) await this.#pauseOrResume(random.pick(this.#subscribers));
    if (random.chance(0.15)) await this.#moveAll();
    if (random.chance(0.12)) {
      this.#couriers.shift()?.kill();
      this.#kills += 1;
      await this.#startCourier();
    }
    if (random.chance(0.08)) await this.#freeze(random.pick(this.#couriers));
    this.#time.advance(random.int(0, 300));
    await this.#oracle.checkReaders(this.#world.db);
    this.#thawing = this.#thawing.filter((frozen) => {
      frozen.rounds -= 1;
      if (frozen.rounds < 0) frozen.thaw();
      return frozen.rounds >= 0;
    });
    this.#releaseSlowCalls();
  }

  #releaseSlowCalls(): void {
    this.#round.open();
    this.#round = makeLatch();
  }

  async #publish(): Promise<void> {
    const events = await this.#publisher.publish();
    this.#stored.push(...events);
    for (const subscriber of this.#subscribers) expectEvents(subscriber, events);
  }

  async #change(subscriber: Subscriber): Promise<void> {
    const random = this.#random;
    const topics = random.pick([[0], [1], [0, 1]]);
    await this.#world.change(subscriber.id, {
      callback: `${this.#receiver.url}${subscriber.path}`,
      topics: this.#idsOf(topics),
      max: random.int(1, 9),
      windowMs: random.int(0, 200),
      strands: subscriber.isWide ? random.int(1, 4) : 1,
    });
    subscriber.topics = topics;
    this.#changes += 1;
  }

  async #pauseOrResume(subscriber: Subscriber): Promise<void> {
    const { ctx, db } = this.#world;
    const author = { actor: 'key:tests', at: new Date(this.#time.now()) };
    subscriber.isPaused = !subscriber.isPaused;
    if (subscriber.isPaused) await pauseSubscriber({ ...ctx, db }, author, subscriber.id, undefined);
    else await resumeSubscriber({ ...ctx, db }, author, subscriber.id, undefined);
    if (subscriber.isPaused) this.#pauses += 1;
  }

  /** Often right after a change of their terms, which are then in force at events that were delivered by others. */
  async #moveAll(): Promise<void> {
    for (const each of this.#subscribers) {
      if (each.moves === undefined) continue;
      if (this.#random.chance(0.6)) await this.#change(each);
      await this.#move(each);
    }
  }

  /** Moves a subscriber back or ahead, whatever a courier is sending to it. */
  async #move(subscriber: Subscriber): Promise<void> {
    const { ctx, db } = this.#world;
    const author = { actor: 'key:tests', at: new Date(this.#time.now()) };
    const from = this.#random.chance(0.5) ? 1 : this.#random.pick([...this.#stored.map(({ seq }) => seq), 1]);
    const requests = this.#receiver.received.length;
    await resumeSubscriber({ ...ctx, db }, author, subscriber.id, String(from));
    subscriber.isPaused = false;
    subscriber.moves = { from, requests };
    // its present topics are in force at all events
    subscriber.expected.clear();
    expectEvents(subscriber, this.#stored);
    this.#moves += 1;
  }

  /** Freezes a courier just before a write, until the others have what it held, and a few rounds more. */
  async #freeze(victim: MortalCourier): Promise<void> {
    // one courier at least goes on
    if (this.#thawing.length + 1 >= this.#couriers.length) return;
    const isFrozen = victim.freezeAtWrite();
    this.#thawing.push({ thaw: victim.thaw, rounds: this.#random.int(0, 2) });
    this.#freezes += 1;
    await this.#publish();
    await until('the errands of a frozen courier passed on', async () => {
      this.#time.advance(1_000);
      this.#releaseSlowCalls();
      if (this.#oracle.faults.length > 0) return true;
      const { held, left } = await this.#world.db.one<{ held: number; left: number }>(sql`
        select (select count(*) from held_errands(array[${victim.id}::uuid])) as held, (select count(*) from errand) as left`);
      return left === 0 || (isFrozen() && held === 0);
    });
  }

  /** A courier whose calls of the store never return once it is dead, and wait while it is frozen. */
  async #startCourier(): Promise<void> {
    const id = newId();
    const gate = { isDead: false, isTrapSet: false, frozen: undefined as Latch | undefined };
    const db = onPool(this.#world.ctx.pool);
    const pass = async (name: string): Promise<void> => {
      if (gate.isTrapSet && writes.has(name)) {
        gate.frozen ??= makeLatch();
        gate.isTrapSet = false;
      }
      await gate.frozen?.opened;
      if (gate.isDead) await new Promise(() => {});
    };
    const store = this.#guard<BusStore>(postgresBusStore(db, id), pass);
    const errands = this.#guard<Errands>(postgresErrands(db), pass);
    const courier = this.#world.makeCourier({ id, store, errands, isMortal: true });
    this.#running.add(courier);
    await courier.start();
    const kill = (): void => {
      this.#running.delete(courier);
      gate.isDead = true;
    };
    const freezeAtWrite = () => {
      gate.isTrapSet = true;
      return () => gate.frozen !== undefined;
    };
    const thaw = (): void => {
      gate.isTrapSet = false;
      gate.frozen?.open();
      gate.frozen = undefined;
    };
    this.#couriers.push({ id, courier, kill, freezeAtWrite, thaw });
  }

  #guard<T extends object>(target: T, pass: (name: string) => Promise<void>): T {
    return new Proxy(target, {
      get: (from, name) => {
        const call: unknown = Reflect.get(from, name);
        if (typeof call !== 'function') return call;
        return async (...args: unknown[]) => {
          if (!this.#isDraining && this.#random.chance(0.1)) await this.#round.opened;
          await pass(String(name));
          const result = await this.#oracle.watch(
            String(name),
            args,
            () => Reflect.apply(call, from, args) as Promise<unknown>,
          );
          await pass('');
          if (!this.#isDraining && this.#random.chance(lostAnswers)) {
            this.#lostAnswers += 1;
            throw Object.assign(new Error('the answer was lost'), { code: '08006' });
          }
          return result;
        };
      },
    });
  }

  #continueAll(): void {
    this.#isDraining = true;
    this.#round.open();
    for (const { thaw } of this.#thawing) thaw();
  }

  /** Waits until nothing is left to deliver, and judges what was received. */
  async #drain(): Promise<void> {
    this.#continueAll();
    const { db, ctx } = this.#world;
    for (const subscriber of this.#subscribers) if (subscriber.isPaused) await this.#pauseOrResume(subscriber);
    await until(
      'nothing is queued',
      async () => {
        this.#time.advance(500);
        ctx.hints.send('bus');
        await this.#oracle.checkReaders(db);
        const { n, fanned } = await db.one<{ n: number; fanned: boolean }>(sql`
          select ((select sum(queued) from reader) + (select count(*) from errand))::bigint as n,
                 (select fanned from bus_state) = (select max(seq) from bus_event) as fanned`);
        return this.#oracle.faults.length > 0 || (n === 0 && fanned);
      },
      maxDrainMs,
    ).catch(() => this.#oracle.note('events or errands are left over'));
    if (this.#oracle.faults.length > 0) return;
    for (const subscriber of this.#subscribers) await this.#judge(subscriber);
  }

  async #judge({ id, path, expected, moves }: Subscriber): Promise<void> {
    const received = this.#receiver.received.filter((request) => request.path === path);
    if (moves !== undefined) {
      const later = this.#receiver.received.slice(moves.requests).filter((request) => request.path === path);
      const wanted = [...expected.keys()].filter((seq) => seq >= moves.from);
      return this.#oracle.checkMoved(path, wanted, received, later);
    }
    this.#oracle.checkReceived(path, expected, received);
    const sent = (await this.#world.readers(id)).reduce((sum, reader) => sum + reader.sent, 0);
    if (sent !== expected.size) this.#oracle.note(`${path}: ${sent} events counted as sent, not ${expected.size}`);
  }
}
