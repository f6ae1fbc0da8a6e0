/** Claims while a long transaction keeps dead rows in the table of the queue: the work is limited, and no run is missed. */
import { afterEach, beforeEach, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { activate, makePipeline, type Pipeline, type TestJob } from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import type { ClaimedRun } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { withClient } from '../postgres/databases.ts';
import { claimRuns } from './claim.ts';
import { deadRows } from '../postgres/claim-floor.ts';
import { applyReports } from './report.ts';

let line: Pipeline;
beforeEach(async () => {
  line = await makePipeline();
});
afterEach(() => line.close());

it('a claim finds runs of a lower rank than the last claimed one within about a second', async () => {
  const job = await line.job();
  const ctx = makeContext(line);
  const worker = newId();
  const claim = async (): Promise<ClaimedRun[]> => {
    const poll = { worker, incarnation: 1, free: 1_000, lanes: [job.lane] };
    return (await claimRuns(ctx, 'test', [poll])).flat();
  };
  const finish = (runs: readonly ClaimedRun[]) =>
    applyReports(
      ctx,
      'test',
      runs.map(({ tenant, run, lease }) => {
        return { tenant, run, lease, state: 'success' as const, reason: null, exit_code: null, started_at: null };
      }),
    );
  await withClient(line.address, async (foreign) => {
    await foreign.query('begin isolation level repeatable read');
    await foreign.query('select 1 from pg_class limit 1');
    await makeDeadRows(line, job);
    await until(
      'the dead rows are known',
      async () => (await deadRows(onPool(line.pool), 'live')) > 50_000 || undefined,
    );
    await activate(line, job.task('only'), '2026-01-01T00:00:00Z', 'normal');
    await until('it is claimed', async () => {
      const runs = await claim();
      await finish(runs);
      return runs.length > 0 || undefined;
    });
    // from here on claims begin at that run's rank; a run of high priority has a much lower one
    await activate(line, job.task('only'), '2026-01-02T00:00:00Z', 'high');
    await until('it is found', async () => (await claim()).length > 0 || undefined);
    await foreign.query('rollback');
  });
});

async function makeDeadRows({ db }: Pipeline, job: TestJob): Promise<void> {
  await db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
    select new_id(), ${job.task('only')}, '2026-01-01'::timestamptz + n * interval '1 second', 1, 1, 'normal', ${job.lane},
           '2026-01-01', '2026-01-01'
      from generate_series(1, 60000) as n`);
  await db.exec(sql`delete from live`);
}
