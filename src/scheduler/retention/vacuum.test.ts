/** The vacuum of the queue's table by a running scheduler, long before autovacuum would run. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { activate, claim, finish } from '../../../test/harness/pipeline.ts';
import { after, minute, Schedule } from '../../../test/harness/scheduling.ts';
import { until } from '../../../test/harness/until.ts';
import { sql } from '../../kernel/sql.ts';

let all: Schedule;
beforeEach(async () => {
  all = await Schedule.make();
});
afterEach(() => all.close());

it('a running scheduler removes the dead rows that runs leave behind', async () => {
  const job = await all.line.job();
  const instants = Array.from({ length: 1_500 }, (_, i) => after(i * minute));
  await activate(
    all.line,
    instants.map(() => job.task('only')),
    instants,
  );
  await finish(all.line, await claim(all.line, job.lane, { places: 1_500 }));
  const vacuums = async (): Promise<number> => {
    const { n } = await all.line.db.one<{ n: number }>(
      sql`select pg_stat_get_vacuum_count('live'::regclass)::integer as n`,
    );
    return n;
  };
  expect(await vacuums()).toBe(0);
  await all.start();
  await until('it has been swept', async () => (await vacuums()) > 0 || undefined);
  expect(all.ctx.faults).toEqual([]);
});
