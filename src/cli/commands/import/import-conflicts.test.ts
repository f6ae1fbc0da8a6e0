import { afterEach, beforeEach, expect, it } from 'vitest';
import { Importing, outcomesOf } from '../../../../test/harness/cli/importing.ts';
import { until } from '../../../../test/harness/until.ts';
import { newId } from '../../../kernel/id.ts';
import { sql } from '../../../kernel/sql.ts';

let on: Importing;
let project: string;
let job: string;
beforeEach(async () => {
  on = await Importing.start();
  project = await on.source.project('shop', { description: 'theirs', config: { a: 1 } });
  job = await on.source.job({ project: 'shop', name: 'nightly', tasks: [{ name: 'try', retry: { max_attempts: 3 } }] });
  await on.source.project('other');
  await on.source.job({ project: 'other', name: 'fine', tasks: [{ name: 'a' }] });
  await on.source.db.exec(sql`insert into project_stash (project_id, name, data) values (${project}, 'key', 'x')`);
  await on.source.db.exec(sql`
    insert into job_stash (job_id, trigger_datetime, name, data) values (${job}, '2026-01-01T00:00:00Z', 'rows', '1')`);
});
afterEach(() => on.stop());

const stashed = (): Promise<{ project_id: string }[]> => on.tenant.db.rows(sql`select project_id from project_stash`);

it('a project of the same name with another id is a conflict, and so are its jobs; the rest is imported', async () => {
  const ours = await on.tenant.call('POST /api/projects', { body: { name: 'shop', description: 'ours' } });
  const ran = await on.run();
  expect(ran.code).toBe(1);
  expect(ran.stdout).toContain(`project shop conflict: a project of that name exists here with another id, ${ours.id}`);
  expect(ran.stdout).toMatch(/shop\/nightly conflict: its project has another id here/);
  expect(ran.stdout).toMatch(/2 of projects and jobs with conflicts left out/);
  expect(ran.stdout).toMatch(/other\/fine created/);
  expect(await stashed()).toEqual([]);
  const taken = await on.report('--overwrite');
  expect([outcomesOf(taken), taken.stash]).toMatchObject([
    { shop: 'changed', 'shop/nightly': 'created', 'other/fine': 'unchanged' },
    { written: 2, skipped: 0 },
  ]);
  expect(await on.tenant.call('GET /api/jobs/{id}', { params: { id: job } })).toMatchObject({ project_id: ours.id });
  expect(await stashed()).toEqual([{ project_id: ours.id }]);
});

it('a project that was deleted here stays so with its jobs and stash, unless it is overwritten', async () => {
  await on.report();
  await on.tenant.call('DELETE /api/projects/{id}', { params: { id: project } });
  const left = await on.report();
  expect([outcomesOf(left), left.stash.skipped]).toMatchObject([{ shop: 'conflict', 'shop/nightly': 'conflict' }, 2]);
  const taken = await on.report('--overwrite');
  expect([outcomesOf(taken), taken.stash]).toMatchObject([
    { shop: 'changed', 'shop/nightly': 'created' },
    { written: 2 },
  ]);
  expect((await on.report()).conflicts).toBe(0);
});

it('a job whose name another job has here is a conflict, also with --overwrite', async () => {
  await on.tenant.call('POST /api/projects', {
    body: { uuid: project, name: 'shop', description: 'theirs', config: { a: 1 } },
  });
  const ours = { uuid: newId(), project: 'shop', name: 'nightly', tasks: [{ name: 'mine' }] };
  await on.tenant.call('PUT /api/jobs', { body: JSON.stringify(ours) });
  const ran = await on.run('--overwrite');
  expect([ran.code, ran.stdout]).toEqual([
    1,
    expect.stringContaining('another job has its name here; rename or delete that one'),
  ]);
});

it('of two starts at once, one starts the job, and its retry waits once', async () => {
  await on.report();
  const retry = {
    run: newId(),
    job,
    task: 'try',
    instant: '2026-01-01T00:00:00Z',
    attempt: 2,
    priority: 'normal',
    due: '2026-01-01T00:00:00Z',
  } as const;
  const holder = await on.tenant.pool.connect();
  await holder.query('begin');
  await holder.query('select 1 from job where id = $1 for update', [job]);
  const call = () => on.tenant.call('POST /api/imports/start', { body: { jobs: [job], retries: [retry] } });
  const starts = [call(), call()];
  await until('both wait', async () => {
    const { n } = await on.tenant.db.one<{ n: number }>(sql`
      select count(*)::integer as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
    return n === 2 || undefined;
  });
  await holder.query('commit');
  holder.release();
  const answers = await Promise.all(starts);
  expect(answers.flatMap(({ started }) => started)).toEqual([job]);
  expect(await on.tenant.db.rows(sql`select run_id, attempt from retry`)).toEqual([{ run_id: retry.run, attempt: 2 }]);
});

it('a job that was started, deleted here and imported again goes on where Waterwheel is now', async () => {
  const tick = { name: 't', start: '2026-01-01T00:00:00Z', period: '1d' };
  const tasks = [{ name: 'a', depends: ['trigger/t'] }];
  const fired = { t: ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'] } as const;
  const ticking = await on.source.job({ project: 'shop', name: 'ticking', triggers: [tick], tasks, fired });
  await on.report();
  await on.report('--start');
  await on.tenant.call('DELETE /api/jobs/{id}', { params: { id: ticking } });
  await on.source.db.exec(sql`update trigger set latest_trigger_datetime = '2026-01-09T00:00:00Z'`);
  expect(outcomesOf(await on.report('--start'))).toMatchObject({ 'shop/ticking': 'conflict' });
  const again = await on.report('--overwrite');
  expect(again.jobs.find(({ id }) => id === ticking)).toMatchObject({ outcome: 'created', resumes: true, triggers: 1 });
  expect((await on.report('--start')).start?.started).toEqual(['shop/ticking']);
  expect(await on.tenant.call('GET /api/jobs/{id}/triggers', { params: { id: ticking } })).toMatchObject([
    { latest_trigger_datetime: '2026-01-09T00:00:00.000Z' },
  ]);
});
