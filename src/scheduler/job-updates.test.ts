import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { at, makePipeline, type Pipeline } from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { Scheduling } from './scheduling.ts';
import { updateProcessor } from './job-updates.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const change = (jobs: readonly string[]): Promise<number> =>
  line.db.exec(sql`
    select append_events(2, ${jobs.map(() => 'job.changed')}::text[], ${jobs}::uuid[], 'test',
                         ${jobs.map(() => null)}::uuid[], ${at(line)}, ${jobs.map(() => '{}')}::text[])`);

it('the update processor receives changes after its start once, even without a wake-up', async () => {
  const before = newId();
  await change([before]);
  const scheduling = new Scheduling(makeContext(line));
  const updates = updateProcessor(scheduling);
  await updates.start();
  const jobs = [newId(), newId()];
  await change(jobs);
  scheduling.ctx.hints.send('triggers', jobs);
  await until('both have arrived', () => scheduling.changedJobs.size === 2 || undefined);
  expect(await scheduling.changedJobs.receive(10)).toEqual(jobs);
  const third = newId();
  await change([third]);
  await until('it waits', () => line.time.sleeping > 0 || undefined);
  line.time.advance(2_000);
  await until('it has arrived', () => scheduling.changedJobs.size === 1 || undefined);
  expect(await scheduling.changedJobs.receive(10)).toEqual([third]);
  await updates.stop();
});

it('the update processor stops although the channel to a stopped trigger processor is full', async () => {
  const scheduling = new Scheduling(makeContext(line));
  const updates = updateProcessor(scheduling);
  await updates.start();
  await change(Array.from({ length: 10_500 }, () => newId()));
  scheduling.ctx.hints.send('triggers', []);
  await until('the channel is full', () => scheduling.changedJobs.size === 10_000 || undefined);
  await updates.stop();
});
