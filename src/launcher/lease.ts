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
  /** No other launcher can be alive when this one starts: it takes the lease whatever its recorded holder. */
  readonly alone: boolean;
  /** The epoch; undefined: another launcher holds the lease, or that is unknown. */
  readonly onChange: (epoch: number | undefined) => void;
  readonly onError: (error: unknown) => void;
}

const everyMs = 1_000;
/** After a longer silence, this process or its server was asleep. Hosts then get `graceMs` to beat again. */
const gapMs = 3_000;
const graceMs = 5_000;

const takenOver = 'MR001';

export function isTakenOver(error: unknown): boolean {
  return sqlStateOf(error) === takenOver;
}

/** Runs a transaction that only the holder of this epoch may commit. A successor waits for its end. */
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
  /** How far the server's clock is ahead of the monotonic clock. */
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

  /** Undefined: on standby. It may be out of date; `asLauncher` checks it in the database. */
  get epoch(): number | undefined {
    return this.#silenceMs() < leaseValidMs ? this.#epoch : undefined;
  }

  /** Whether silent hosts may be declared lost: false while their beats could not have been read. */
  get mayJudge(): boolean {
    return performance.now() >= this.#graceUntil && this.#silenceMs() < gapMs;
  }

  /** After the server's clock was set, hosts seem silent until they beat again, so they get `graceMs`. */
  noteServerTime(now: Date): void {
    const aheadMs = now.getTime() - performance.now();
    if (Math.abs(aheadMs - (this.#serverAheadMs ?? aheadMs)) > gapMs) this.#graceUntil = performance.now() + graceMs;
    this.#serverAheadMs = aheadMs;
  }

  /** Call it when the database has refused a write because of the epoch. */
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

  /** The longer of two durations: the monotonic clock stops while a machine sleeps, and the wall clock may be set. */
  #silenceMs(): number {
    return Math.max(performance.now() - this.#heardAt.monotonic, Date.now() - this.#heardAt.wall);
  }

  #heard(sentAt: { monotonic: number; wall: number }): void {
    const gap = this.#silenceMs();
    // the time before the first answer is unknown; if no other launcher can be alive, that does not matter
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

  /** Also deletes the launcher that let the lease expire. If it was only frozen, its next beat inserts it again. */
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

  /**
   * Releases the lease, so that a standby need not wait for its expiry. In one statement: if the launcher died between two, its
   * row would stay, and it would seem to stand by.
   */
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
