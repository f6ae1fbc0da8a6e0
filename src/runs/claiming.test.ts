/** The stage that hands runs out (I4): order, lanes, leases, and runs of paused jobs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  activate,
  at,
  claim,
  type ClaimedRow,
  finish,
  makePipeline,
  pauseTasks,
  type Pipeline,
  release,
  type TestJob,
} from '../../test/harness/pipeline.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const days = (from: number, count: number): string[] => Array.from({ length: count }, (_, i) => day(from + i));
const queue = (job: TestJob, instants: readonly string[], priority?: 'backfill' | 'low' | 'normal' | 'high') =>
  activate(
    line,
    instants.map(() => job.task('only')),
    instants,
    priority,
  );

/** Claims one run after the other until none is left. Returns them in the order in which they were handed out. */
async function inOrder(lanes: string | readonly string[]): Promise<ClaimedRow[]> {
  const runs: ClaimedRow[] = [];
  for (;;) {
    const [run] = await claim(line, lanes, { places: 1 });
    if (run === undefined) return runs;
    runs.push(run);
  }
}

describe('claims', () => {
  it('a claim takes the run that was queued first, whatever its instant', async () => {
    const job = await line.job();
    for (const instant of [day(3), day(1), day(2)]) {
      await queue(job, [instant]);
      line.time.advance(1);
    }
    expect((await inOrder(job.lane)).map((run) => run.instant.toISOString())).toEqual([day(3), day(1), day(2)]);
  });

  it('a claim takes higher priorities first, but no run waits for ever', async () => {
    const job = await line.job();
    await queue(job, [day(1)], 'backfill');
    line.time.advance(1);
    for (const [i, priority] of (['low', 'normal', 'high'] as const).entries())
      await queue(job, [day(2 + i)], priority);
    expect((await inOrder(job.lane)).map((run) => run.priority)).toEqual(['high', 'normal', 'low', 'backfill']);
    await queue(job, [day(10)], 'backfill');
    line.time.advance(61 * 60_000);
    await queue(job, [day(11)], 'normal');
    expect((await inOrder(job.lane)).map((run) => run.priority)).toEqual(['backfill', 'normal']);
  });

  it('a claim takes runs of its lanes only, in the order of rank over all of them', async () => {
    const [one, two, three] = [await line.job(), await line.job(), await line.job()];
    for (const job of [two, one, three, two]) {
      await queue(job, [day(job === two ? 2 : 1)]);
      line.time.advance(1);
    }
    const runs = await inOrder([one.lane, two.lane]);
    expect(runs.map((run) => run.task_id)).toEqual([two.task('only'), one.task('only'), two.task('only')]);
    expect(await claim(line, three.lane)).toHaveLength(1);
    expect(await claim(line, [])).toEqual([]);
  });

  it('each run goes to one claim, even if many claim at once', async () => {
    const job = await line.job();
    await queue(job, days(1, 200));
    const claims = await Promise.all(
      Array.from({ length: 5 }, () => claim(line, job.lane, { places: 60, worker: newId() })),
    );
    const runs = claims.flat();
    expect(runs).toHaveLength(200);
    expect(new Set(runs.map((run) => run.id)).size).toBe(200);
  });

  it('a claim does not wait for a run that another transaction has locked', async () => {
    const job = await line.job();
    await queue(job, days(1, 3));
    await line.db.transaction(async (tx) => {
      const [locked] = await tx.rows<{ id: string }>(sql`
        select id from live where lane = ${job.lane} order by rank, id limit 1 for update`);
      const runs = await claim(line, job.lane);
      expect(runs).toHaveLength(2);
      expect(runs.map((run) => run.id)).not.toContain(locked?.id);
    });
    expect(await claim(line, job.lane)).toHaveLength(1);
  });

  it('a claim fills one place of each worker in turn, and increments the lease of each run (I4)', async () => {
    const job = await line.job();
    const [a, b] = [newId(), newId()];
    await queue(job, days(1, 3));
    const runs = await line.db.rows<ClaimedRow>(sql`
      select * from claim_runs(${[job.lane]}::text[], ${[a, b, a, b, a]}::uuid[], '{1,1,1,1,1}', ${at(line)}, ${at(line)})`);
    expect(runs.map((run) => run.worker_id).toSorted()).toEqual([a, a, b].toSorted());
    expect(runs.map((run) => run.lease)).toEqual([1, 1, 1]);
    expect(await claim(line, job.lane)).toEqual([]);
  });

  it('a claim writes one lease row per worker, whose end and incarnation never decrease', async () => {
    const job = await line.job();
    const worker = newId();
    await queue(job, days(1, 3));
    await claim(line, job.lane, { places: 2, worker, incarnation: 5 });
    const lease = () => line.db.one(sql`select incarnation, until from lease where worker_id = ${worker}`);
    const first = await lease();
    await line.db.rows(sql`
      select * from claim_runs(${[job.lane]}::text[], ${[worker]}::uuid[], '{4}', ${new Date(0)}, ${at(line)})`);
    expect(await lease()).toEqual(first);
  });

  it('a claim for two incarnations of one worker at once is accepted', async () => {
    const job = await line.job();
    const worker = newId();
    await queue(job, days(1, 4));
    const runs = await line.db.rows<ClaimedRow>(sql`
      select * from claim_runs(${[job.lane]}::text[], ${[worker, worker, worker, worker]}::uuid[], '{1,2,1,2}', ${at(line)}, ${at(line)})`);
    expect(runs).toHaveLength(4);
    expect(await line.db.one(sql`select incarnation from lease where worker_id = ${worker}`)).toEqual({
      incarnation: 2,
    });
  });

  it('a claim parks a run whose job was paused after it was queued, and does not count it as handed out', async () => {
    const job = await line.job();
    await queue(job, days(1, 2));
    await pauseTasks(line, job, true);
    expect(await claim(line, job.lane)).toEqual([]);
    expect(await line.db.rows(sql`select parked, lease, worker_id from live where lane = ${job.lane}`)).toEqual([
      { parked: true, lease: 0, worker_id: null },
      { parked: true, lease: 0, worker_id: null },
    ]);
    await pauseTasks(line, job, false);
    expect(await release(line)).toBe(2);
    expect((await claim(line, job.lane)).map((run) => run.lease)).toEqual([1, 1]);
  });

  it('a claim finds ready runs behind any number of runs of a paused job', async () => {
    const paused = await line.job();
    await queue(paused, days(1, 50));
    await pauseTasks(line, paused, true);
    const other = await line.job({ tasks: [{ name: 'only', queue: paused.lane.split(':')[1] }] });
    line.time.advance(1);
    await queue(other, [day(1)]);
    const [run] = await claim(line, paused.lane, { places: 2 });
    expect(run?.task_id).toBe(other.task('only'));
  });

  it('a claimed run has the params that its instant was started with', async () => {
    const job = await line.job();
    await line.db.exec(sql`insert into instant_params values (${job.id}, ${day(1)}, '{"x": 1}')`);
    await queue(job, days(1, 2));
    const runs = await claim(line, job.lane);
    const params = new Map(runs.map((run) => [run.instant.toISOString(), run.params]));
    expect(params).toEqual(
      new Map([
        [day(1), { x: 1 }],
        [day(2), null],
      ]),
    );
    await finish(line, runs);
  });
});
