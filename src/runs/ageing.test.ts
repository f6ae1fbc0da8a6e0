/** A run's rank is its queue time minus the head start of its priority: the run that has waited longest comes first in the end. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claim, finish, fire, makePipeline, type Pipeline, type TestJob } from '../../test/harness/pipeline.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const minute = 60_000;
const start = '2020-01-01T00:00:00.000Z';
const at = (n: number): string => new Date(Date.parse(start) + n * minute).toISOString();
const makeJob = (task: object = {}): Promise<TestJob> =>
  line.job({
    triggers: [{ name: 't', start, period: '1m' }],
    tasks: [{ name: 'a', depends: ['trigger/t'], ...task }],
  });

/**
 * Each minute as many runs arrive as can be served, behind a queue of ten. Returns the minutes until the run of `late` is
 * served.
 */
async function minutesUntil(
  late: TestJob,
  stream: TestJob,
  { priority, give }: { priority: 'normal' | 'high'; give: number },
): Promise<number | undefined> {
  const first = Array.from({ length: 10 }, (_, n) => at(n));
  await fire(
    line,
    first.map(() => stream.trigger('t')),
    first,
    { priority },
  );
  await fire(line, late.trigger('t'), at(0), { priority: 'backfill', cause: 'a backfill' });
  for (let n = 0; n < give; n++) {
    line.time.advance(minute);
    await fire(line, stream.trigger('t'), at(10 + n), { priority });
    const [run] = await claim(line, [late.lane, stream.lane], { places: 1 });
    if (run?.task_id === late.task('a')) return n;
    await finish(line, run ? [run] : []);
  }
  return undefined;
}

describe('backfills behind an endless stream of runs', () => {
  it('a backfill is served after an hour if the others are normal', async () => {
    const waited = await minutesUntil(await makeJob(), await makeJob(), { priority: 'normal', give: 100 });
    expect(waited).toBeGreaterThanOrEqual(60);
    expect(waited).toBeLessThanOrEqual(72);
  });

  it('a backfill is served after four hours if the others are high', async () => {
    const waited = await minutesUntil(await makeJob(), await makeJob(), { priority: 'high', give: 300 });
    expect(waited).toBeGreaterThanOrEqual(240);
    expect(waited).toBeLessThanOrEqual(252);
  });

  it('a backfill that waits for a place in a pool is served after the same time', async () => {
    const pool = `pool ${newId()}`;
    const [late, stream] = [await makeJob({ pool }), await makeJob({ pool })];
    await line.db.exec(sql`update gate set capacity = 1 where name = ${pool}`);
    const waited = await minutesUntil(late, stream, { priority: 'normal', give: 100 });
    expect(waited).toBeGreaterThanOrEqual(60);
    expect(waited).toBeLessThanOrEqual(72);
  });
});
