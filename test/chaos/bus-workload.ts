/**
 * Events and subscribers whose outcome is known, and which bring every step of the bus up again and again: open and full batches,
 * receivers that fail, refuse single events or are gone, changing strands, replays, tests, and both sources of the relay.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { deliverKey } from '../../src/bus/errand-keys.ts';
import { databaseTrouble } from '../../src/errors.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import { basic, publishSurely } from '../harness/bus-client.ts';
import type { BusReceiver, Received, Reply } from '../harness/bus-receiver.ts';
import { until } from '../harness/until.ts';
import type { Dice } from './dice.ts';
import type { ChaosInstallation } from './installation.ts';

const patienceMs = 60_000;
const shortMs = 3_000;
/** Limits the backlog, so that a slow machine also finishes soon after the walk. */
const maxQueued = 400;
const bad = '"bad":true';

export interface ExpectedSubscriber {
  readonly name: string;
  readonly id: string;
  /** Its topics. */
  readonly topics: readonly string[];
  /** It refuses bad events, which become dead letters. */
  readonly isPicky: boolean;
  /** Order counts for each key by itself. */
  readonly isWide: boolean;
}

export interface Acknowledged {
  readonly seq: number;
  readonly key: string;
  readonly isBad: boolean;
}

interface Kind {
  readonly topics: readonly string[];
  readonly wish?: object;
  readonly reply?: (batch: Omit<Received, 'status'>) => Reply;
}

export class BusWorkload {
  /** By topic: what was answered with 2xx. */
  readonly acknowledged = new Map<string, Acknowledged[]>();
  /** Commits that called `millrace.publish()`. */
  publishedInSql = 0;
  readonly subscribers: ExpectedSubscriber[] = [];
  readonly #installation: ChaosInstallation;
  readonly #receiver: BusReceiver;
  readonly #dice: Dice;
  #key = '';
  #requests = 0;
  #isGone = false;

  constructor(installation: ChaosInstallation, receiver: BusReceiver, dice: Dice) {
    this.#installation = installation;
    this.#receiver = receiver;
    this.#dice = dice;
  }

  get received(): readonly Received[] {
    return this.#receiver.received;
  }

  readonly #kinds: Readonly<Record<string, Kind>> = {
    plain: { topics: ['orders'], wish: { max: 7, timeout: 0 } },
    window: { topics: ['orders', 'rows'], wish: { max: 100, timeout: 1_500 } },
    flaky: { topics: ['orders'], wish: { max: 5 }, reply: () => this.#dice.next([204, 204, 204, 500, 'reset']) },
    wide: { topics: ['orders'], wish: { max: 3, ordering: 'key', strands: 3 } },
    picky: { topics: ['mixed'], wish: { max: 4 }, reply: ({ body }) => (body.includes(bad) ? 400 : 204) },
    gone: { topics: ['orders'], reply: () => this.#replyOfGone() },
    follower: { topics: ['millrace_projects'] },
  };

  #replyOfGone(): Reply {
    const status = this.#isGone ? 410 : 204;
    this.#isGone = false;
    return status;
  }

  async begin(): Promise<void> {
    this.#receiver.reply = (batch) => this.#kinds[batch.path.slice(1)]?.reply?.(batch) ?? 204;
    this.#key = (
      await this.#installation.call('POST /api/keys', { body: { name: 'shop', role: 'publisher', tenant: 'default' } })
    ).key;
    for (const [name, kind] of Object.entries(this.#kinds)) await this.#subscribe(name, kind);
  }

  async #subscribe(name: string, { topics, wish }: Kind): Promise<void> {
    const { url, call } = this.#installation;
    const { key } = await call('POST /api/keys', { body: { name, role: 'client', tenant: 'default' } });
    const body = JSON.stringify({ topics, callback: `${this.#receiver.url}/${name}`, timeout: 0, ...wish });
    const headers = { authorization: basic(key) };
    const answer = await fetch(`${url}/bus/subscription`, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(`subscribing was answered with ${answer.status}: ${await answer.text()}`);
    const { id } = await this.#installation.db.one<{ id: string }>(sql`
      select id from subscriber where name like ${`${name}--%`}`);
    this.subscribers.push({ name, id, topics, isPicky: name === 'picky', isWide: name === 'wide' });
  }

  /** Works until the signal aborts. In the end no subscriber is disabled. */
  async feed(signal: AbortSignal): Promise<void> {
    for (let n = 0; !signal.aborted; n++) {
      const order = (i: number) => this.#event({ n, i });
      await Promise.all([this.#publish('orders', [order(0)]), this.#publish('orders', [1, 2, 3, 4, 5, 6].map(order))]);
      await this.#publish('mixed', [this.#event({ n, bad: true }), this.#event({ n, i: 2 }), this.#event({ n, i: 3 })]);
      await this.#steps[n % this.#steps.length]?.(n);
      while (!signal.aborted && (await this.#queued()) > maxQueued) await sleep(50);
    }
    this.#isGone = false;
    await until(
      'the subscriber that was gone has all events',
      async () => {
        const { state, queued } = await this.#standing('gone');
        // its last answer may still be on the way to the store
        if (state !== 'active') await this.#operate('resume', 'gone');
        return queued === 0;
      },
      2 * patienceMs,
    );
  }

  #standing(name: string): Promise<{ state: string; queued: number }> {
    return this.#surely((db) =>
      db.one<{ state: string; queued: number }>(sql`
        select s.state, sum(r.queued)::bigint as queued
          from subscriber s join reader r on r.subscriber_id = s.id
         where s.id = ${this.#idOf(name)}
         group by s.state`),
    );
  }

  /** Repeats a statement while the database is away. */
  async #surely<T>(work: (db: Db) => Promise<T>): Promise<T> {
    const { done } = await until(
      'the database answers',
      () =>
        work(this.#installation.db).then(
          (result) => ({ done: result }),
          (error: unknown) => {
            if (databaseTrouble(error) !== undefined) return undefined;
            throw error;
          },
        ),
      patienceMs,
    );
    return done;
  }

  /** One of them follows each round of events. All may be repeated. */
  readonly #steps: readonly ((n: number) => Promise<unknown>)[] = [
    async (n) => {
      const url = `https://shop.example/rows/${n}`;
      // a connection may end after the commit: the row is in the outbox or, once copied, in the log
      await this.#surely((db) =>
        db.exec(sql`
          select publish('rows', 'update', ${url}, jsonb_build_object('n', ${n}::integer))
           where not exists (select from outbox where url = ${url})
             and not exists (
               select from bus_event e join bus_topic t on t.id = e.topic_id
                where t.name = 'rows' and e.body::jsonb ->> 'url' = ${url})`),
      );
      this.publishedInSql += 1;
    },
    (n) => this.#call('PATCH', `/bus/subscribers/${this.#idOf('wide')}`, { strands: 2 + (n % 3), ordering: 'key' }),
    () => this.#replay('plain', { from: String(this.#recent()) }),
    (n) => this.#call('PUT', '/api/projects', { name: 'followed', description: `${n}` }),
    () => this.#operate('test', 'plain'),
    async () => {
      this.#isGone = true;
      await this.#operate('resume', 'gone');
    },
    async () => {
      // as if its last delivery were long ago: then the event after a refused one decides
      const isIdle = async () => (await this.#standing('picky')).queued === 0;
      await until('it has all events', isIdle, shortMs).catch(() => {});
      await this.#surely((db) =>
        db.exec(sql`update subscriber set last_delivered_at = null where id = ${this.#idOf('picky')}`),
      );
      await this.#replay('picky', { from: '1', only_undelivered: true });
    },
    // errands without work do no harm
    () => {
      const key = deliverKey({ subscriber: this.#idOf('follower'), strand: 0 });
      return this.#surely((db) => db.exec(sql`select push_errands('main', array[${key}], array[null::timestamptz])`));
    },
  ];

  #event({ n, i = 0, bad: isBad = false }: { n: number; i?: number; bad?: boolean }): object {
    const key = `key ${this.#dice.upTo(8)}`;
    return {
      type: 'update',
      url: `https://shop.example/${n}/${i}`,
      key,
      data: { n, i, key, ...(isBad && { bad: true }) },
    };
  }

  /** Publishes until the answer is 2xx. The key makes all attempts one. */
  async #publish(topic: string, events: readonly object[]): Promise<void> {
    const idempotencyKey = `request ${this.#requests++}`;
    const request = { base: this.#installation.url, key: this.#key, topic, events, idempotencyKey };
    const seqs = await publishSurely(request);
    const list = this.acknowledged.get(topic) ?? [];
    this.acknowledged.set(topic, list);
    for (const [i, event] of events.entries()) {
      const { data } = event as { data: { key: string; bad?: boolean } };
      list.push({ seq: seqs[i] ?? 0, key: data.key, isBad: data.bad === true });
    }
  }

  #operate(action: 'resume' | 'test', name: string): Promise<void> {
    return this.#call('POST', `/bus/subscribers/${this.#idOf(name)}/${action}`);
  }

  /** On a slow machine, the subscriber may have as many replays as it may already. Then it gets no further one this time. */
  #replay(name: string, body: object): Promise<void> {
    return this.#call('POST', `/bus/subscribers/${this.#idOf(name)}/replays`, body, [409]);
  }

  /** A call of an operator, repeated until it is answered, with 2xx or one of the other statuses. */
  async #call(method: string, path: string, body?: object, others: readonly number[] = []): Promise<void> {
    await until(
      `${method} ${path} is answered`,
      async () => {
        const answer = await this.#installation.ask(method, path, body).catch(() => undefined);
        if (answer === undefined || answer.status >= 500) return undefined;
        if (answer.ok || others.includes(answer.status)) return true;
        throw new Error(`${method} ${path} was answered with ${answer.status}: ${await answer.text()}`);
      },
      patienceMs,
    );
  }

  #idOf(name: string): string {
    return this.subscribers.find((each) => each.name === name)?.id ?? '';
  }

  #recent(): number {
    return this.acknowledged.get('orders')?.at(-20)?.seq ?? 1;
  }

  /** What couriers have to deliver. The subscriber that is gone has ever more, until it is resumed for good. */
  async #queued(): Promise<number> {
    const count = (db: Db) =>
      db.one<{ n: number }>(sql`
        select coalesce(sum(r.queued), 0)::bigint as n
          from reader r join subscriber s on s.id = r.subscriber_id
         where s.id <> ${this.#idOf('gone')}`);
    return (await this.#surely(count)).n;
  }
}
