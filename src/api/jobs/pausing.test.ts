/** Pausing and unpausing a job by each method: running runs finish, queued runs wait, nothing is lost. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { activate, claim, finish, fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { until } from '../../../test/harness/until.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { makeScheduler } from '../../scheduler/scheduler.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
/** Deletes all jobs and ends their runs, so that no test claims runs of another. */
afterEach(async () => {
  const jobs = await api.db.rows<{ id: string }>(sql`select id from job where deleted_at is null`);
  for (const { id } of jobs) await api.call('DELETE /api/jobs/{id}', { params: { id } });
  await finish(api, await claim(api, 1_000), 'cancelled');
});
afterAll(() => api.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();

interface Subject {
  readonly job: MadeJob;
  /** The applied document, without `paused`. */
  readonly parts: { readonly project: string; readonly triggers: readonly object[]; readonly tasks: readonly object[] };
}

type Way = (subject: Subject, paused: boolean) => Promise<unknown>;

const ways: Readonly<Record<string, Way>> = {
  'PUT /api/jobs/{id}/paused': ({ job }, paused) =>
    api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused } }),
  'PUT /api/jobs': ({ parts }, paused) => makeJob(api, { ...parts, paused }),
  'POST /api/jobs': ({ parts }, paused) => {
    const body = JSON.stringify({ name: 'job', description: '', ...parts, paused });
    return api.call('POST /api/jobs', { body });
  },
  'PUT /api/jobs with another document': ({ parts }, paused) =>
    makeJob(api, { ...parts, paused, tasks: [...parts.tasks, { name: newId() }] }),
};

async function makeSubject(task: object = {}): Promise<Subject> {
  const parts = {
    project: `p ${newId()}`,
    triggers: [{ name: 't', start: day(1), period: '1d', catchup: 'none' }],
    tasks: [
      { name: 'a', depends: ['trigger/t'], retry: { max_attempts: 2, delay: '1ms' }, ...task },
      { name: 'b', depends: ['task/a'] },
    ],
  };
  return { job: await makeJob(api, parts), parts };
}

describe.each(Object.keys(ways))('pausing by %s', (name) => {
  const set: Way = (subject, paused) => ways[name]?.(subject, paused) ?? Promise.reject(new Error('no such way'));

  it('running runs finish, all others wait, and run when the job is unpaused', async () => {
    const subject = await makeSubject();
    const { job } = subject;
    // three runs are running; two of them lead to more during the pause: a token downstream, and a retry
    for (const n of [1, 2, 3]) await fire(api, job.triggers['t'], day(n));
    const running = await claim(api);
    await fire(api, job.triggers['t'], day(4));
    const scheduler = makeScheduler(api.ctx);
    await scheduler.start();
    try {
      await set(subject, true);
      await fire(api, job.triggers['t'], day(5));
      const byHand = await activate(api, job.tasks['b'], day(6));
      await finish(api, running.slice(0, 1), 'success');
      await finish(api, running.slice(1, 2), 'failure');
      api.ctx.hints.send('retries');
      await until('the retry is queued', async () => {
        const rows = await api.db.rows(sql`select 1 from live where attempt = 2 and parked`);
        return rows.length > 0 || undefined;
      });
      expect(await claim(api)).toEqual([]);
      await finish(api, running.slice(2), 'success');
      const waiting = await api.db.one(sql`
        select (select count(*) from live where parked)::integer as runs, (select count(*) from held)::integer as tokens`);
      // day 4, the retry and the activated one; b of days 1 and 3, a of day 5
      expect(waiting).toEqual({ runs: 3, tokens: 3 });
      await set(subject, false);
      const seen = new Set<string>();
      await until('all of it runs', async () => {
        for (const run of await claim(api)) {
          seen.add(`${run.task_id === job.tasks['a'] ? 'a' : 'b'} ${run.id === byHand ? 'by hand' : ''}`.trim());
          await finish(api, [run]);
        }
        const left = await api.db.rows(
          sql`select 1 from held union all select 1 from live union all select 1 from retry`,
        );
        return left.length === 0 || undefined;
      });
      expect([...seen].toSorted()).toEqual(['a', 'b', 'b by hand']);
      const ended = await api.db.rows(sql`
        select task.name, count(*)::integer as n from run join task on task.id = run.task_id
         where task.job_id = ${job.id} and run.state = 'success' group by 1 order by 1`);
      expect(ended).toEqual([
        { name: 'a', n: 5 },
        { name: 'b', n: 6 },
      ]);
    } finally {
      await scheduler.stop();
    }
  });

  it('a paused job returns its place in a pool to another job, and gets one again afterwards', async () => {
    const pool = `pool ${newId()}`;
    const [subject, other] = [await makeSubject({ pool }), await makeSubject({ pool })];
    for (const { job } of [subject, other]) await fire(api, job.triggers['t'], day(1));
    await set(subject, true);
    const runs = await claim(api);
    expect(runs.map((run) => run.task_id)).toEqual([other.job.tasks['a']]);
    await set(subject, false);
    await api.db.exec(sql`select release_tokens(10, ${new Date()})`);
    expect(await claim(api)).toEqual([]);
    await finish(api, runs);
    await api.db.exec(sql`select * from sweep_gates(10, ${new Date()})`);
    const next = await claim(api);
    expect(next.map((run) => run.task_id)).toContain(subject.job.tasks['a']);
    await finish(api, next);
  });
});

it('a document without `paused` leaves a job paused, and a clear drops the waiting retry', async () => {
  const subject = await makeSubject({ retry: { max_attempts: 2, delay: '1h' } });
  const { job, parts } = subject;
  await fire(api, job.triggers['t'], day(1));
  await finish(api, await claim(api), 'failure');
  await ways['PUT /api/jobs/{id}/paused']?.(subject, true);
  await makeJob(api, parts);
  expect(await api.call('GET /api/jobs/{id}/paused', { params: { id: job.id } })).toBe(true);
  expect(await api.db.rows(sql`select attempt from retry`)).toEqual([{ attempt: 2 }]);
  await api.call('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant: day(1) } });
  expect(await api.db.rows(sql`select 1 from retry`)).toEqual([]);
});
