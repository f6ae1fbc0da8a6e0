/** A claim's answer is limited by the bytes of its params, and runs that do not fit are not lost. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../test/harness/engine-context.ts';
import { activate, makePipeline, type Pipeline, type TestJob } from '../../test/harness/pipeline.ts';
import type { ClaimedRun } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { claimRuns } from './claim.ts';

let line: Pipeline;
let ctx: TestContext;
let offers = 0;
beforeAll(async () => {
  line = await makePipeline();
  const made = makeContext(line);
  made.hub.on('ready', made.tenant.id, () => void offers++);
  ctx = made;
});
afterAll(() => line.close());

/** Queues `count` runs, each with params of `bytes` bytes. */
async function queue(job: TestJob, count: number, bytes: number): Promise<void> {
  const instants = Array.from({ length: count }, (_, i) => new Date(Date.UTC(2026, 0, 1, 0, 0, i)).toISOString());
  await line.db.exec(sql`
    insert into instant_params (job_id, instant, params)
    select task.job_id, i, json_build_object('x', repeat('x', ${bytes}))
      from task
     cross join unnest(${instants}::timestamptz[]) as i
     where task.id = ${job.task('only')}`);
  const tasks = instants.map(() => job.task('only'));
  await activate(line, tasks, instants);
}

async function claim(job: TestJob, free: number): Promise<ClaimedRun[]> {
  const [runs = []] = await claimRuns(ctx, 'test', [{ worker: newId(), incarnation: 1, free, lanes: [job.lane] }]);
  return runs;
}

async function claimAll(job: TestJob): Promise<ClaimedRun[][]> {
  const answers: ClaimedRun[][] = [];
  for (let runs = await claim(job, 1_000); runs.length > 0; runs = await claim(job, 1_000)) answers.push(runs);
  return answers;
}

const bytesOf = (runs: readonly ClaimedRun[]): number => JSON.stringify(runs).length;

it('runs with large params are handed out a few at a time, each once, and never count as lost', async () => {
  const job = await line.job();
  await queue(job, 60, 250_000);
  const before = offers;
  const answers = await claimAll(job);
  expect(answers.flat()).toHaveLength(60);
  expect(new Set(answers.flat().map(({ run }) => run)).size).toBe(60);
  for (const runs of answers) expect(bytesOf(runs)).toBeLessThan(1_500_000);
  expect(answers.flat().every(({ params }) => String(params['x']).length === 250_000)).toBe(true);
  // no other hint announces the remaining runs
  expect(offers - before).toBeGreaterThanOrEqual(3);
  expect(await line.db.one(sql`select max(losses) as losses from live`)).toEqual({ losses: 0 });
});

it('runs whose params exceed the limit of an answer are handed out one by one', async () => {
  const job = await line.job();
  await queue(job, 3, 5_000_000);
  expect((await claimAll(job)).map((runs) => runs.length)).toEqual([1, 1, 1]);
});

it('runs without params are handed out together, even after large ones', async () => {
  const job = await line.job();
  await queue(job, 20, 1_000_000);
  await claimAll(job);
  const instants = Array.from({ length: 500 }, (_, i) => new Date(Date.UTC(2027, 0, 1, 0, 0, i)).toISOString());
  await activate(
    line,
    instants.map(() => job.task('only')),
    instants,
  );
  expect(await claim(job, 1_000)).toHaveLength(500);
});
