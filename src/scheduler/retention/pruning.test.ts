/** Retention of runs and the data that depends on them: tokens, firings, logs, stashes, parameters. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeContext } from '../../../test/harness/engine-context.ts';
import {
  activate,
  at,
  claim,
  countOf,
  finish,
  historyOf,
  makePipeline,
  type Pipeline,
  runAll,
  runsOf,
  type TestJob,
} from '../../../test/harness/pipeline.ts';
import { until } from '../../../test/harness/until.ts';
import type { Retention } from '../../contract/context.ts';
import { sql } from '../../kernel/sql.ts';
import { pruneTenant } from './prune.ts';
import { makeScheduler } from '../scheduler.ts';

const day = 86_400_000;
const thirtyDays: Retention = { ageMs: 30 * day, runs: null, events: null };
const instant = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const prune = (retention: Retention = thirtyDays): Promise<number> => pruneTenant(makeContext({ ...line, retention }));

/** Starts and finishes a run of the job's only task at the instant. */
async function finishRun(job: TestJob, when: string, outcome: 'success' | 'failure' = 'success'): Promise<string> {
  const [id = ''] = await activate(line, job.task('only'), when);
  await runAll(line, job, outcome);
  return id;
}

async function countChunks(run: string): Promise<number> {
  return (await line.db.one<{ n: number }>(sql`select count(*)::integer as n from log where run_id = ${run}`)).n;
}

async function writeLog(run: string, chunks: number): Promise<void> {
  await line.db.exec(sql`
    insert into log (run_id, lease, number, stream, at, data)
    select ${run}, 1, n, 'stdout', ${at(line)}, 'x' from generate_series(1, ${chunks}::integer) as n`);
}

describe('runs', () => {
  it('runs older than their job keeps are deleted with their logs and tokens; younger ones stay', async () => {
    const job = await line.job();
    const old = await finishRun(job, instant(1));
    await writeLog(old, 3);
    line.time.advance(29 * day);
    const young = await finishRun(job, instant(2));
    await writeLog(young, 1);
    line.time.advance(2 * day);
    await prune();
    expect((await historyOf(line, job.task('only'))).map((run) => run.id)).toEqual([young]);
    expect([await countChunks(old), await countChunks(young)]).toEqual([0, 1]);
    expect(await countOf(line, job.task('only'), instant(1))).toBeUndefined();
    expect(await countOf(line, job.task('only'), instant(2))).toBe(0);
  });

  it('surplus runs are deleted by their end, oldest first, whatever their instants are', async () => {
    const job = await line.job();
    const made: string[] = [];
    for (const n of [9, 1, 8, 2, 7]) {
      made.push(await finishRun(job, instant(n)));
      line.time.advance(1_000);
    }
    await prune({ ageMs: null, runs: 3, events: null });
    expect((await historyOf(line, job.task('only'))).map((run) => run.id)).toEqual(made.slice(2));
  });

  it("the document's retention overrides the installation's", async () => {
    const [forever, briefly, few] = await Promise.all([
      line.job({ retention: { age: 'forever', runs: 'forever' } }),
      line.job({ retention: { age: '1h' } }),
      line.job({ retention: { runs: 1 } }),
    ]);
    for (const job of [forever, briefly, few]) {
      await finishRun(job, instant(1));
      await finishRun(job, instant(2));
      line.time.advance(1_000);
      await finishRun(job, instant(3));
    }
    line.time.advance(2 * 3_600_000);
    await prune({ ageMs: 30 * day, runs: 2, events: null });
    const left = [forever, briefly, few].map((job) => runsOf(line, job.task('only')));
    expect(await Promise.all(left)).toEqual([3, 0, 1]);
    line.time.advance(365 * day);
    await prune();
    expect(await runsOf(line, forever.task('only'))).toBe(3);
  });

  it('runs that ended at the same moment are kept or deleted together, so never too few stay', async () => {
    const job = await line.job({ retention: { runs: 2 } });
    await activate(
      line,
      [1, 2, 3, 4].map(() => job.task('only')),
      [1, 2, 3, 4].map(instant),
    );
    await runAll(line, job);
    line.time.advance(1_000);
    await finishRun(job, instant(5));
    await prune();
    expect(await runsOf(line, job.task('only'))).toBe(5);
    line.time.advance(1_000);
    await finishRun(job, instant(6));
    await prune();
    expect(await runsOf(line, job.task('only'))).toBe(2);
  });

  it('runs and their logs are deleted in several batches', async () => {
    const job = await line.job();
    const instants = Array.from({ length: 2_300 }, (_, n) => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString());
    await activate(
      line,
      instants.map(() => job.task('only')),
      instants,
    );
    const runs = await claim(line, job.lane, { places: 3_000 });
    await finish(line, runs);
    await writeLog(runs[0]?.id ?? '', 1_200);
    line.time.advance(31 * day);
    await prune();
    expect(await runsOf(line, job.task('only'))).toBe(0);
    expect(await countChunks(runs[0]?.id ?? '')).toBe(0);
  });

  it('runs of deleted jobs and removed tasks expire like all others', async () => {
    const job = await line.job({ tasks: [{ name: 'only' }, { name: 'other' }] });
    await finishRun(job, instant(1));
    await job.change({ tasks: [{ name: 'other' }] });
    await line.db.exec(sql`select delete_jobs(array[${job.id}]::uuid[], 'test', ${at(line)})`);
    line.time.advance(31 * day);
    await prune();
    expect(await runsOf(line, job.task('only'))).toBe(0);
  });
});

describe('pruning', () => {
  it('two concurrent passes share the work', async () => {
    const jobs = await Promise.all([line.job({ retention: { runs: 50 } }), line.job({ retention: { age: '1d' } })]);
    for (const job of jobs) {
      const instants = Array.from({ length: 120 }, (_, n) => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString());
      await activate(
        line,
        instants.map(() => job.task('only')),
        instants,
      );
      for (const run of await claim(line, job.lane, { places: 1_000 })) {
        line.time.advance(1);
        await finish(line, [run]);
      }
    }
    line.time.advance(2 * day);
    await Promise.all([prune(), prune(), prune()]);
    await prune();
    expect(await Promise.all(jobs.map((job) => runsOf(line, job.task('only'))))).toEqual([50, 0]);
  });

  it('a pass that is killed leaves nothing half deleted, and the next pass does the rest', async () => {
    const job = await line.job();
    const instants = Array.from({ length: 3_000 }, (_, n) => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString());
    await activate(
      line,
      instants.map(() => job.task('only')),
      instants,
    );
    await finish(line, await claim(line, job.lane, { places: 3_000 }));
    line.time.advance(31 * day);
    const pruning = prune().catch((error: unknown) => error);
    await until('some are gone', async () => (await runsOf(line, job.task('only'))) < 3_000);
    await line.db.exec(sql`
      select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`);
    await pruning;
    const strays = await line.db.one<{ n: number }>(sql`
      select count(*)::integer as n from token t
       where task_id = ${job.task('only')}
         and not exists (select 1 from run r where r.task_id = t.task_id and r.instant = t.instant)`);
    expect(strays.n).toBe(0);
    await prune();
    expect(await runsOf(line, job.task('only'))).toBe(0);
  });

  it('every scheduler prunes', async () => {
    const job = await line.job();
    await finishRun(job, instant(1));
    line.time.advance(29 * day);
    const young = await finishRun(job, instant(2));
    line.time.advance(2 * day);
    const ctx = makeContext({ ...line, retention: { ageMs: 30 * day, runs: 100_000, events: 50_000_000 } });
    const scheduler = makeScheduler(ctx);
    await scheduler.start();
    try {
      await until('the old run is gone', async () => (await runsOf(line, job.task('only'))) === 1);
    } finally {
      await scheduler.stop();
    }
    expect((await historyOf(line, job.task('only'))).map((run) => run.id)).toEqual([young]);
  });
});
