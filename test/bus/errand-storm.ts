/**
 * Several processes that push, take, finish and lose the same few errands at once, each in an order of its own, while two scrub at
 * the same time, and answers are lost after their commit.
 *
 * 1. Pushed work is done by a worker that looked after the push (I8).
 * 2. A write under a lease has no effect once a newer lease of the same errand was granted.
 * 3. No call fails, unless its connection was ended. In the end, every errand that is left can be run.
 */
import type { Pool } from 'pg';
import { type Errands, errandLimits, type HeldErrand } from '../../src/errands/contract.ts';
import { postgresErrands } from '../../src/errands/postgres.ts';
import { isConnectionLoss } from '../../src/errors.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, onPool, sql } from '../../src/kernel/sql.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import { makeTenantDatabase, type TenantDatabase } from '../harness/tenant-database.ts';
import { Random } from '../simulation/random.ts';

export interface Storm {
  readonly faults: readonly string[];
  /** Calls whose connection was ended. */
  readonly broken: number;
  /** Calls that took effect without the caller's knowledge. */
  readonly unanswered: number;
  /** Errands that workers took. */
  readonly taken: number;
}

export interface StormOptions {
  readonly seed: number;
  readonly isTerminating?: boolean;
  readonly breakRule?: (db: Db) => Promise<void>;
}

const processes = 4;
const steps = 120;
const keys = Array.from({ length: 10 }, (_, i) => `key ${i}`);
const application = 'errand storm';
/** Of the answers, as if the process had died, or its connection had ended, after the commit. */
const lostAnswers = 0.05;

export async function runStorm(options: StormOptions): Promise<Storm> {
  const database = await makeTenantDatabase();
  const rest = { schema: 'millrace', application, max: 2, allowPooler: false, onError: () => {} } as const;
  const pools = Array.from({ length: processes }, () => openPool({ address: database.address, ...rest }));
  try {
    await options.breakRule?.(database.db);
    return await new ErrandStorm(options, database, pools).run();
  } finally {
    await Promise.all(pools.map((pool) => pool.end()));
    await database.close();
  }
}

class ErrandStorm {
  readonly #options: StormOptions;
  readonly #database: TenantDatabase;
  readonly #pools: readonly Pool[];
  readonly #random: Random;
  /** By key: work that was wanted, and up to where it was done. */
  readonly #wanted = new Map<string, number>();
  readonly #done = new Map<string, number>();
  /** By key: the newest lease that a process was given. */
  readonly #newest = new Map<string, number>();
  readonly #faults = new Set<string>();
  #broken = 0;
  #unanswered = 0;
  #isFinishing = false;
  #taken = 0;
  #nowMs = Date.UTC(2026, 0, 1);

  constructor(options: StormOptions, database: TenantDatabase, pools: readonly Pool[]) {
    this.#options = options;
    this.#database = database;
    this.#pools = pools;
    this.#random = new Random(`errands ${options.seed}`);
  }

  async run(): Promise<Storm> {
    await Promise.all(this.#pools.map((pool) => this.#process(postgresErrands(onPool(pool)))));
    await this.#finish(postgresErrands(this.#database.db));
    return { faults: [...this.#faults], broken: this.#broken, unanswered: this.#unanswered, taken: this.#taken };
  }

  async #process(errands: Errands): Promise<void> {
    const worker = newId();
    const held: HeldErrand[] = [];
    for (let step = 0; step < steps; step++) {
      this.#nowMs += this.#random.int(0, 1_000);
      await this.#step(errands, worker, held);
      if (this.#options.isTerminating && this.#random.chance(0.05)) await this.#terminate();
    }
  }

  async #step(errands: Errands, worker: string, held: HeldErrand[]): Promise<void> {
    const random = this.#random;
    const some = (): string[] => this.#shuffled(keys).slice(0, random.int(1, keys.length));
    const given = (): HeldErrand[] => this.#shuffled(held.splice(0, random.int(0, held.length)));
    switch (
      random.weighted({ push: 4, take: 4, ack: 4, nack: 2, promote: 1, due: 2, beat: 2, scrub: 1, progress: 1 })
    ) {
      case 'push':
        return this.#push(errands, some());
      case 'take':
        return this.#take(errands, worker, held);
      case 'ack':
        return this.#write('ack', given(), (some) => errands.ack('main', worker, some));
      case 'nack': {
        const runAt = this.#nowMs + random.int(0, 2_000);
        return this.#write('nack', given(), (some) =>
          errands.nack(
            'main',
            worker,
            some.map((each) => ({ ...each, runAt })),
          ),
        );
      }
      case 'promote':
        return this.#try('promote', () => errands.promote('main', some()));
      case 'due':
        return this.#try('due', () => errands.due('main', this.#nowMs, random.int(1, 10)));
      case 'beat': {
        const named = this.#shuffled(held).map((each) => ({ ...each, queue: 'main' as const }));
        return this.#try('beat', () => errands.beat(worker, named, this.#nowMs));
      }
      case 'progress':
        return this.#write('progress', this.#shuffled(held), (some) => errands.progress('main', worker, some));
      case 'scrub':
      default: {
        const silentBefore = this.#nowMs - random.int(0, 5_000);
        const scrub = () => this.#try('scrub', () => errands.scrub('main', silentBefore, errandLimits.mostLosses));
        await Promise.all([scrub(), scrub()]);
      }
    }
  }

  /** A write about held errands. It may concern none that another process holds by now. */
  async #write(
    name: string,
    held: readonly HeldErrand[],
    call: (held: readonly HeldErrand[]) => Promise<readonly string[]>,
  ): Promise<void> {
    // a process that lost an errand and took it again may name both leases
    const valid = new Set(held.filter(({ key, lease }) => lease >= (this.#newest.get(key) ?? 0)).map(({ key }) => key));
    await this.#try(name, async () => {
      for (const key of await call(held))
        if (!valid.has(key)) this.#faults.add(`${name} had an effect under a lost lease`);
    });
  }

  /** The work is there before its errand is pushed. A push that failed is repeated, as its caller would. */
  async #push(errands: Errands, pushed: readonly string[]): Promise<void> {
    for (const key of pushed) this.#wanted.set(key, (this.#wanted.get(key) ?? 0) + 1);
    const at = this.#random.chance(0.3) ? { runAt: this.#nowMs + this.#random.int(0, 1_000) } : {};
    const wishes = pushed.map((key) => ({ key, ...at }));
    for (let isPushed = false; !isPushed; )
      await this.#try('push', async () => {
        await errands.push('main', wishes);
        isPushed = !this.#isUnanswered();
      });
  }

  #isUnanswered(): boolean {
    const isLost = !this.#isFinishing && this.#random.chance(lostAnswers);
    if (isLost) this.#unanswered += 1;
    return isLost;
  }

  /** A worker does all work that it finds when it has the errand. */
  async #take(errands: Errands, worker: string, held: HeldErrand[]): Promise<void> {
    await this.#try('acquire', async () => {
      const taken = await errands.acquire('main', worker, this.#random.int(1, 5), this.#nowMs);
      for (const { key, lease } of taken) this.#newest.set(key, Math.max(lease, this.#newest.get(key) ?? 0));
      if (this.#isUnanswered()) return;
      for (const { key, lease } of taken) {
        held.push({ key, lease });
        this.#taken += 1;
        this.#done.set(key, this.#wanted.get(key) ?? 0);
      }
    });
  }

  async #try(name: string, call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#broken += 1;
      if (!this.#options.isTerminating || !isConnectionLoss(error)) {
        this.#faults.add(`${name}: ${String(error)}`);
        throw error;
      }
    }
  }

  async #terminate(): Promise<void> {
    await this.#database.db.rows(sql`
      select pg_terminate_backend(pid)
        from pg_stat_activity
       where datname = current_database() and application_name like ${`${application}%`} and random() < 0.3`);
  }

  /** All processes are gone. A new one takes over whatever is left. */
  async #finish(errands: Errands): Promise<void> {
    const worker = newId();
    const held: HeldErrand[] = [];
    this.#isFinishing = true;
    this.#nowMs += 60_000;
    await errands.scrub('main', this.#nowMs, errandLimits.mostLosses);
    await errands.revive('main', keys);
    await errands.due('main', this.#nowMs, 1_000);
    for (let before = -1; before !== held.length; ) {
      before = held.length;
      await this.#take(errands, worker, held);
    }
    await errands.ack('main', worker, held);
    const left = Object.values(await errands.counts('main')).reduce((sum, n) => sum + n, 0);
    if (left > 0) this.#faults.add(`${left} errands cannot be run`);
    for (const [key, wanted] of this.#wanted)
      if (this.#done.get(key) !== wanted) this.#faults.add(`an errand is lost: ${key}`);
  }

  #shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, order: this.#random.next() }))
      .toSorted((a, b) => a.order - b.order)
      .map(({ item }) => item);
  }
}
