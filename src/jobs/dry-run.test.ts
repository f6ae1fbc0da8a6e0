/** A dry run, which an editor sends while a user types: it waits for no run, and no run waits for it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { activate, applyDocument, makePipeline, type Pipeline } from '../../test/harness/pipeline.ts';
import { onClient, sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

it('a dry run takes neither the lock of the event log nor the lock of a queued run', async () => {
  const tasks = [{ name: 'a', max_running: 3 }, { name: 'b' }, { name: 'c', depends: ['task/a', 'task/b'] }];
  const job = await line.job({ project: 'p', name: 'j', tasks });
  for (const name of ['a', 'b', 'c']) await activate(line, job.task(name), '2026-01-01T00:00:00.000Z');
  const [holder, asker] = [await line.pool.connect(), await line.pool.connect()];
  try {
    await holder.query('begin');
    await holder.query('select pg_advisory_xact_lock(7345, 1)');
    await holder.query('lock table live, token, held, retry, lowered, event in access exclusive mode');
    await asker.query(`set lock_timeout = '2s'`);
    const edited = [{ name: 'a', max_running: 1, pool: 'new' }, { name: 'bb' }, { name: 'c', depends: ['task/a'] }];
    const document = { project: 'p', name: 'j', description: '', paused: true, triggers: [], tasks: edited };
    const applied = await applyDocument(onClient(asker), document, { dryRun: true });
    expect(applied).toMatchObject({ outcome: 'changed', version: 2 });
    expect(applied.changes.map(({ path, change }) => `${path} ${change}`)).toEqual(
      expect.arrayContaining(['tasks.b removed', 'tasks.bb added']),
    );
    expect(applied.warnings).toMatchObject([{ path: 'tasks[0].pool' }]);
  } finally {
    await holder.query('rollback');
    await asker.query('reset lock_timeout');
    holder.release();
    asker.release();
  }
});

it('a dry run warns once of a new pool, and not of an existing one', async () => {
  const tasks = [{ name: 'a', pool: 'known' }];
  await line.job({ project: 'q', name: 'j', tasks });
  const wanted = ['known', 'z', 'y', 'z'].map((pool, n) => ({ name: `t${n}`, pool }));
  const document = { project: 'q', name: 'k', description: '', triggers: [], tasks: wanted };
  const dry = await applyDocument(line.db, document, { dryRun: true });
  expect(dry.warnings.map(({ path }) => path)).toEqual(['tasks[2].pool', 'tasks[1].pool']);
  expect(await line.db.rows(sql`select name from gate where name in ('y', 'z')`)).toEqual([]);
  expect((await applyDocument(line.db, document)).warnings).toEqual(dry.warnings);
});
