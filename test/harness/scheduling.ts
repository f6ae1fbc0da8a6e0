/** A tenant's schedulers on a database of their own, with a clock that the test moves: what fires, and when all is done. */
import type { Service } from '../../src/kernel/service.ts';
import { sql } from '../../src/kernel/sql.ts';
import { makeScheduler } from '../../src/scheduler/scheduler.ts';
import { earlierMs } from '../../src/scheduler/triggers.ts';
import { makeContext, type TestContext } from './engine-context.ts';
import { type JobParts, makePipeline, type Pipeline, type TestJob } from './pipeline.ts';
import { until } from './until.ts';

/** The clock starts here. */
export const noon = '2026-06-01T00:00:00.000Z';
/** Far away: what a trigger processor waits for when there is nothing else. */
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

  /** One more scheduler of this tenant. */
  async start(): Promise<void> {
    const scheduler = makeScheduler(this.ctx);
    this.#running.push(scheduler);
    await scheduler.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((scheduler) => scheduler.stop()));
  }

  /** A job with the trigger `t` and the task `a`. */
  triggered(trigger: object, more: JobParts = {}): Promise<TestJob> {
    const triggers = [{ name: 't', period: '1m', ...trigger }];
    return this.line.job({ triggers, tasks: [{ name: 'a', depends: ['trigger/t'] }], ...more });
  }

  /** The scheduler hears that the job has changed. */
  tell(job: TestJob): void {
    this.ctx.hints.send('triggers', [job.id]);
  }

  async fired(job: TestJob): Promise<string[]> {
    const rows = await this.line.db.rows<{ instant: Date }>(sql`
      select instant from firing where trigger_id = ${job.trigger('t')} order by instant`);
    return rows.map((row) => row.instant.toISOString());
  }

  /** Until exactly these have fired. */
  async firedAre(job: TestJob, instants: readonly string[]): Promise<void> {
    await until(`fires ${instants.join(' ')}`, async () => {
      const seen = await this.fired(job);
      if (seen.length > instants.length) throw new Error(`fired too often: ${seen.join(' ')}`);
      return seen.join() === instants.join() || undefined;
    });
  }

  async firedCount(job: TestJob, count: number): Promise<void> {
    await until(`${count} have fired`, async () => (await this.fired(job)).length === count || undefined);
  }

  async someFired(job: TestJob): Promise<void> {
    await until('some have fired', async () => (await this.fired(job)).length > 0 || undefined);
  }

  /**
   * Until the trigger processor has dealt with all before that moment and waits for it, or to be planned for it, and nothing
   * is to catch up.
   */
  async waitsFor(at: string): Promise<void> {
    const { time } = this.line;
    const plannedMs = new Date(at).getTime() - earlierMs(this.ctx.tenant.id);
    await until(`waits for ${at}`, async () => {
      if (!time.isAwaited(at) && !time.isAwaited(plannedMs)) return undefined;
      return (await this.line.db.rows(sql`select 1 from catchup`)).length === 0 || undefined;
    });
  }

  /** Until missed instants of the job are noted for catch-up. */
  async noted(job: TestJob): Promise<void> {
    await until('it is noted', async () => ((await this.#catchups(job)).length > 0 ? true : undefined));
  }

  /** From now on catch-up stands still after its next commit, before it notes that, until it is let go. */
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

  /** Until the catch-up has nothing to do but to look again soon. */
  async heldBack(): Promise<void> {
    const { time } = this.line;
    const soon = 500;
    await until('it is held back', () => time.isAwaited(time.now() + soon) || undefined);
  }

  /** Until none are left. Who is held back looks again as time passes, so it does. */
  async caughtUp(job: TestJob): Promise<void> {
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
