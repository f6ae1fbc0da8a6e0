/** A tenant's bus on a real database: subscribers, published events, and couriers in this process. */
import { makeCourier, type CourierOptions } from '../../src/bus/delivery/courier.ts';
import { type Terms, writeRevision } from '../../src/bus/subscribers/revisions.ts';
import type { Courier, CourierContext, Outbound } from '../../src/contract/bus.ts';
import { newId } from '../../src/kernel/id.ts';
import { deadlineIn } from '../../src/kernel/service.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import { systemTime, type Time } from '../../src/kernel/time.ts';
import { makeContext, type TestContext } from './engine-context.ts';
import { plainOutbound } from './plain-outbound.ts';
import { makeTenantDatabase, type TenantDatabase } from './tenant-database.ts';

export interface SubscriberOptions {
  readonly callback: string;
  readonly topics?: readonly number[];
  readonly filter?: Terms['filter'];
  readonly max?: number;
  readonly maxBytes?: number;
  readonly windowMs?: number;
  readonly quiet?: boolean;
  readonly strands?: number;
  readonly rate?: number | null;
  readonly maxAttempts?: number | null;
  readonly maxAgeMs?: number | null;
  readonly requestMs?: number | null;
}

export interface Published {
  readonly topic?: number;
  readonly url?: string;
  readonly keyHash?: number;
  readonly target?: string | null;
  readonly data?: unknown;
  readonly atMs?: number;
}

export interface ReaderState {
  readonly strand: number;
  readonly pos: number;
  readonly queued: number;
  readonly sent: number;
  readonly batch_end: number | null;
  readonly attempts: number;
  readonly oldest_at: Date | null;
}

interface TestCourier {
  readonly outbound?: Outbound;
  readonly others?: () => number;
  readonly lost?: () => readonly string[];
  readonly id?: string;
  /** The test ends it by itself. */
  readonly isMortal?: boolean;
}

export class TestBus {
  readonly database: TenantDatabase;
  readonly ctx: TestContext;
  readonly time: Time;
  readonly outbound: ReturnType<typeof plainOutbound>;
  readonly #couriers = new Set<Courier>();

  static async make(time: Time = systemTime): Promise<TestBus> {
    const bus = new TestBus(await makeTenantDatabase(), time);
    await bus.ctx.hub.service.start();
    await bus.db.exec(sql`
      insert into bus_topic (name, owner_name, created_at)
      select 'topic_' || n, 'tests', ${new Date(0)} from generate_series(1, 40) as n`);
    return bus;
  }

  constructor(database: TenantDatabase, time: Time) {
    this.database = database;
    this.time = time;
    this.ctx = makeContext({ address: database.address, pool: database.pool, time });
    this.outbound = plainOutbound();
  }

  get db(): Db {
    return this.database.db;
  }

  /** Couriers that were not killed are stopped by `close`. */
  makeCourier(options: CourierOptions & TestCourier = {}): Courier {
    const {
      outbound = this.outbound,
      others = () => 0,
      lost = () => [],
      id = newId(),
      isMortal = false,
      ...rest
    } = options;
    const ctx: CourierContext = { ...this.ctx, courier: { id, others, lost }, outbound };
    const courier = makeCourier(ctx, rest);
    if (!isMortal) this.#couriers.add(courier);
    return courier;
  }

  async startCourier(options: Parameters<TestBus['makeCourier']>[0] = {}): Promise<Courier> {
    const courier = this.makeCourier(options);
    await courier.start();
    return courier;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#couriers].map((courier) => courier.stop(deadlineIn(5_000))));
    this.outbound.close();
    await this.ctx.hub.service.stop();
    await this.database.close();
  }

  async subscribe(options: SubscriberOptions): Promise<string> {
    const id = newId();
    const credential = this.ctx.secrets.encrypt(Buffer.from(`uuid-${id}`));
    await this.db.transaction(async (tx) => {
      await tx.exec(sql`
        insert into subscriber (id, name, identity, kind, callback, credential, rate, max_attempts, max_age_ms, request_ms, created_at)
        values (
          ${id}, ${`tests--${id}`}, ${newId()}, 'http', ${options.callback}, ${credential}, ${options.rate ?? null},
          ${options.maxAttempts ?? null}, ${options.maxAgeMs ?? null}, ${options.requestMs ?? null}, ${new Date(this.time.now())})`);
      await this.#revise(tx, id, options);
    });
    return id;
  }

  /** Changes a subscription, as the API does: state first, readers next, the number of the log's head last. */
  async change(id: string, options: SubscriberOptions): Promise<number> {
    return this.db.transaction(async (tx) => {
      await tx.exec(sql`update subscriber set callback = ${options.callback} where id = ${id}`);
      return this.#revise(tx, id, options);
    });
  }

  async #revise(tx: Db, id: string, options: SubscriberOptions): Promise<number> {
    const strands = options.strands ?? 1;
    await tx.exec(sql`update bus_state set revision = revision + 1`);
    await tx.exec(sql`select from reader where subscriber_id = ${id} order by strand for update`);
    return writeRevision(tx, id, {
      topics: options.topics ?? [1],
      filter: options.filter ?? null,
      max_events: options.max ?? 100,
      max_bytes: options.maxBytes ?? 1_048_576,
      window_ms: options.windowMs ?? 0,
      quiet: options.quiet ?? false,
      strands,
      ordering: strands > 1 ? 'key' : 'subscriber',
    });
  }

  /** Returns the numbers. */
  async publish(events: readonly Published[], isHinted = true): Promise<number[]> {
    const nowMs = this.time.now();
    const rows = await this.db.transaction(async (tx) => {
      await tx.exec(sql`select pg_advisory_xact_lock(7345, 8)`);
      return tx.rows<{ seq: number }>(sql`
        insert into bus_event (seq, topic_id, key_hash, target, at, body)
        select n.seq, n.topic, n.key_hash, n.target, n.at, n.body || ',"id":"' || n.seq || '"}'
          from (
            select nextval('bus_seq') as seq, e.*
              from unnest(
                ${events.map((e) => e.topic ?? 1)}::integer[],
                ${events.map((e) => e.keyHash ?? 0)}::integer[],
                ${events.map((e) => e.target ?? null)}::uuid[],
                ${events.map((e) => new Date(e.atMs ?? nowMs))}::timestamptz[],
                ${events.map((e) => elementOf(e, nowMs))}::text[]) as e (topic, key_hash, target, at, body)) as n
        returning seq`);
    });
    if (isHinted) this.ctx.hints.send('bus');
    return rows.map(({ seq }) => seq);
  }

  async readers(id: string): Promise<ReaderState[]> {
    return this.db.rows<ReaderState & object>(sql`
      select strand, pos, queued, sent, batch_end, attempts, oldest_at
        from reader where subscriber_id = ${id} order by strand`);
  }
}

/** The element without its last character: its id follows. */
function elementOf({ topic = 1, url = 'https://example.org/1', data }: Published, nowMs: number): string {
  return JSON.stringify({
    topic: `topic_${topic}`,
    type: 'update',
    url,
    t: nowMs,
    ...(data === undefined ? {} : { data }),
  }).slice(0, -1);
}

export function many(count: number, of: (i: number) => Published = () => ({})): Published[] {
  return Array.from({ length: count }, (_, i) => of(i));
}
