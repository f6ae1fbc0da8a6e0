/**
 * One launcher is active: it holds the lease, which is renewed every second and valid for five, by the server's clock. Each
 * holder has an epoch of its own, and all its writes are conditional on that epoch (`asLauncher`). So the database refuses the
 * writes of a launcher that was frozen and has been replaced.
 */
import { leaseValidMs } from '../control/liveness.ts';
import { sqlStateOf } from '../errors.ts';
import { performance } from 'node:perf_hooks';
import { machine } from '../kernel/process/machine.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { every, type Service } from '../kernel/service.ts';

export interface LeaseOptions {
  readonly db: Db;
  readonly launcherId: string;
  readonly version: string;
  /** No other launcher can be alive when this one starts: the lease is taken whoever is said to have it. */
  readonly alone: boolean;
  /** The epoch, or undefined: it is another's, or nobody knows. */
  readonly onChange: (epoch: number | undefined) => void;
  readonly onError: (error: unknown) => void;
}

const everyMs = 1_000;
/** This process was asleep, or its server: others may need as long to be heard of again. */
const gapMs = 3_000;
const graceMs = 5_000;

const takenOver = 'MR001';

export function isTakenOver(error: unknown): boolean {
  return sqlStateOf(error) === takenOver;
}

/** A transaction that only the holder of this epoch may commit; a successor waits for it. */
export function asLauncher<T>(db: Db, epoch: number, work: (tx: Db) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.exec(sql`select assert_epoch(${epoch})`);
    return work(tx);
  });
}

export class Lease {
  readonly #options: LeaseOptions;
  readonly #startedAt = new Date();
  #epoch: number | undefined;
  #heardAt = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
  #graceUntil = Number.NEGATIVE_INFINITY;
  /** How far the server's clock is ahead of the clock that only runs. */
  #serverAheadMs: number | undefined;
  #firstOfAll = true;
  readonly service: Service;

  constructor(options: LeaseOptions) {
    this.#options = options;
    const ticking = every(
      everyMs,
      'lease',
      () => this.#tick(),
      (error) => this.#failed(error),
    );
    this.service = {
      name: 'lease',
      start: ticking.start,
      stop: async () => {
        await ticking.stop();
        await this.#leave().catch(() => {});
      },
    };
  }

  /** Undefined: stands by. What it says may be out of date; the database knows better. */
  get epoch(): number | undefined {
    return this.#silenceMs() < leaseValidMs ? this.#epoch : undefined;
  }

  /** Whether a host that has been silent may be judged, or could not have been heard. */
  get mayJudge(): boolean {
    return performance.now() >= this.#graceUntil && this.#silenceMs() < gapMs;
  }

  /** A host that beat before the server's clock was set seems silent until it beats again. */
  noteServerTime(now: Date): void {
    const aheadMs = now.getTime() - performance.now();
    if (Math.abs(aheadMs - (this.#serverAheadMs ?? aheadMs)) > gapMs) this.#graceUntil = performance.now() + graceMs;
    this.#serverAheadMs = aheadMs;
  }

  /** Told by whoever was refused by the database. */
  lose(): void {
    if (this.#epoch === undefined) return;
    this.#epoch = undefined;
    this.#options.onChange(undefined);
  }

  async #tick(): Promise<void> {
    const sentAt = { monotonic: performance.now(), wall: Date.now() };
    const held = this.#epoch === undefined ? undefined : await this.#renew(this.#epoch);
    if (held === false) this.lose();
    const epoch = this.#epoch ?? (await this.#take());
    await this.#beat();
    this.#heard(sentAt);
    if (epoch === undefined || epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#options.onChange(epoch);
  }

  /** A machine that sleeps stops the clock that only runs, and one whose clock is set moves the other. */
  #silenceMs(): number {
    return Math.max(performance.now() - this.#heardAt.monotonic, Date.now() - this.#heardAt.wall);
  }

  #heard(sentAt: { monotonic: number; wall: number }): void {
    const gap = this.#silenceMs();
    // nobody knows what was before the first time; where no other can be alive, there is nothing to know
    if (this.#firstOfAll ? !this.#options.alone : gap > gapMs) this.#graceUntil = performance.now() + graceMs;
    this.#firstOfAll = false;
    this.#heardAt = sentAt;
  }

  #failed(error: unknown): void {
    if (this.#epoch !== undefined && this.epoch === undefined) this.#options.onChange(undefined);
    this.#options.onError(error);
  }

  async #renew(epoch: number): Promise<boolean> {
    const renewed = await this.#options.db.exec(sql`
      update launcher_lease set renewed_at = clock_timestamp()
       where holder = ${this.#options.launcherId} and epoch = ${epoch}`);
    return renewed > 0;
  }

  /** Whoever has let it run out does not stand by either; one that was only frozen says with its next beat that it does. */
  async #take(): Promise<number | undefined> {
    const { db, launcherId, alone } = this.#options;
    const row = await db.maybeOne<{ epoch: number }>(sql`
      with was as (select holder from launcher_lease),
      taken as (
        update launcher_lease set holder = ${launcherId}, epoch = epoch + 1, renewed_at = clock_timestamp()
         where holder is null or ${alone && this.#firstOfAll} or renewed_at < clock_timestamp() - ${leaseValidMs} * interval '1 millisecond'
        returning epoch
      ),
      lost as (delete from launcher using was, taken where launcher.id = was.holder and launcher.id <> ${launcherId})
      select epoch from taken`);
    return row?.epoch;
  }

  async #beat(): Promise<void> {
    const { db, launcherId, version } = this.#options;
    await db.exec(sql`
      with silent as (
        delete from launcher where id <> ${launcherId} and beat_at < clock_timestamp() - interval '1 minute'
      )
      insert into launcher (id, machine, pid, version, started_at, beat_at)
      values (${launcherId}, ${machine}, ${process.pid}, ${version}, ${this.#startedAt}, clock_timestamp())
      on conflict (id) do update set beat_at = excluded.beat_at`);
  }

  /** Whoever stands by need not wait for the lease to run out. At once: who dies in between would seem to stand by itself. */
  async #leave(): Promise<void> {
    const { db, launcherId } = this.#options;
    this.#epoch = undefined;
    await db.exec(sql`
      with lease as (
        update launcher_lease set holder = null, renewed_at = '-infinity' where holder = ${launcherId}
      )
      delete from launcher where id = ${launcherId}`);
  }
}
