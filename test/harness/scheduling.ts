/** A tenant's schedulers on a database of their own, with a clock that the test moves, and waits for what they do. */
import type { Service } from '../../src/kernel/service.ts';
import { sql } from '../../src/kernel/sql.ts';
import { makeScheduler } from '../../src/scheduler/scheduler.ts';
import { warmUpLeadMs } from '../../src/scheduler/triggers.ts';
import { makeContext, type TestContext } from './engine-context.ts';
import { type JobParts, makePipeline, type Pipeline, type TestJob } from './pipeline.ts';
import { until } from './until.ts';

/** The initial time of the clock. */
export const noon = '2026-06-01T00:00:00.000Z';
/** A far instant that the trigger processor waits for when nothing else is due. */
export const sentinel = '2100-01-01T00:00:00.000Z';
export const minute = 60_000;
export const day = 24 * 60 * minute;
export const after = (ms: number): string => new Date(Date.parse(noon) + ms).toISOString();

export class Schedule {
  readonly line: Pipeline;
  ctx: TestContext;
  readonly #running: Service[] = [];

  private constructor(line: Pipeline) {
    this.line = line;
    this.ctx = makeContext(line);
  }

  static async make(): Promise<Schedule> {
    const schedule = new Schedule(await makePipeline());
    await schedule.triggered({ start: sentinel });
    return schedule;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.line.close();
  }

  /** Starts another scheduler of this tenant. */
  async start(): Promise<void> {
    const scheduler = makeScheduler(this.ctx);
    this.#running.push(scheduler);
    await scheduler.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((scheduler) => scheduler.stop()));
  }

  /** Applies a job with the trigger `t` and the task `a`. */
  triggered(trigger: object, more: JobParts = {}): Promise<TestJob> {
    const triggers = [{ name: 't', period: '1m', ...trigger }];
    return this.line.job({ triggers, tasks: [{ name: 'a', depends: ['trigger/t'] }], ...more });
  }

  /** Sends the hint that the job's triggers have changed. */
  tell(job: TestJob): void {
    this.ctx.hints.send('triggers', [job.id]);
  }

  async fired(job: TestJob): Promise<string[]> {
    const rows = await this.line.db.rows<{ instant: Date }>(sql`
      select instant from firing where trigger_id = ${job.trigger('t')} order by instant`);
    return rows.map((row) => row.instant.toISOString());
  }

  /** Waits until exactly these instants have fired. */
  async firedAre(job: TestJob, instants: readonly string[]): Promise<void> {
    await until(`fires ${instants.join(' ')}`, async () => {
      const seen = await this.fired(job);
      if (seen.length > instants.length) throw new Error(`fired too often: ${seen.join(' ')}`);
      return seen.join() === instants.join() || undefined;
    });
  }

  async waitForFiringCount(job: TestJob, count: number): Promise<void> {
    await until(`${count} have fired`, async () => (await this.fired(job)).length === count || undefined);
  }

  async waitForSomeFiring(job: TestJob): Promise<void> {
    await until('some have fired', async () => (await this.fired(job)).length > 0 || undefined);
  }

  /**
   * Waits until the trigger processor has handled everything before that moment and sleeps until it, or until the moment at
   * which it plans for it, and no catch-up is left.
   */
  async waitsFor(at: string): Promise<void> {
    const { time } = this.line;
    const plannedMs = new Date(at).getTime() - warmUpLeadMs(this.ctx.tenant.id);
    await until(`waits for ${at}`, async () => {
      if (!time.isAwaited(at) && !time.isAwaited(plannedMs)) return undefined;
      return (await this.line.db.rows(sql`select 1 from catchup`)).length === 0 || undefined;
    });
  }

  /** Waits until missed instants of the job are recorded for catch-up. */
  async waitUntilNoted(job: TestJob): Promise<void> {
    await until('it is noted', async () => ((await this.#catchups(job)).length > 0 ? true : undefined));
  }

  /** Blocks catch-up after its next commit, before it records its progress. Returns a function that unblocks it. */
  async brakeCatchup(): Promise<() => Promise<void>> {
    const holder = await this.line.pool.connect();
    await holder.query('select pg_advisory_lock(1, 1)');
    await this.line.db.exec(sql`
      create function brake() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock_shared(1, 1); return coalesce(new, old); end'`);
    await this.line.db.exec(
      sql`create trigger brake before update or delete on catchup for each row execute function brake()`,
    );
    return async () => {
      await holder.query('select pg_advisory_unlock(1, 1)');
      holder.release();
    };
  }

  /** Waits until the catch-up is held back and only polls every 500 ms. */
  async waitUntilHeldBack(): Promise<void> {
    const { time } = this.line;
    const pollMs = 500;
    await until('it is held back', () => time.isAwaited(time.now() + pollMs) || undefined);
  }

  /** Waits until no catch-up of the job is left. Moves the clock meanwhile, because a catch-up that is held back polls. */
  async waitUntilCaughtUp(job: TestJob): Promise<void> {
    await until('all is caught up', async () => {
      this.line.time.advance(100);
      return (await this.#catchups(job)).length === 0 ? true : undefined;
    });
  }

  #catchups(job: TestJob): Promise<object[]> {
    return this.line.db.rows(sql`select 1 from catchup where trigger_id = ${job.trigger('t')}`);
  }

  marks(job: TestJob): Promise<{ earliest: Date | null; latest: Date | null }> {
    return this.line.db.one(sql`select earliest, latest from trigger where id = ${job.trigger('t')}`);
  }
}
