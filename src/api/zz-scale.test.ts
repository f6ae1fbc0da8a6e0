import { it } from 'vitest';
import { findJobWithCounts } from './job-queries.ts';
import { makeJob, activate, claim, aWorker } from '../../test/harness/runs.ts';
import { makeTenantApi } from '../../test/harness/tenant-api.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
it('scale', async () => {
  const api = await makeTenantApi();
  const tasks = Array.from({ length: 10 }, (_, i) => ({ name: `t${i}`, depends: ['trigger/t'] }));
  const triggers = [{ name: 't', start: '2020-01-01T00:00:00Z', period: '1m' }];
  const job = await makeJob(api, { project: 'big', tasks, triggers });
  const rare = await makeJob(api, { project: 'big', name: 'rare' });
  await activate(api, rare.tasks['only'], '2026-01-01T00:00:00Z');
  await claim(api);
  const gone = newId();
  const ids = Object.values(job.tasks);
  for (let k = 0; k < 10; k++) {
    await api.db.exec(sql`insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, queued_at, started_at, finished_at)
      select new_id(), (${ids}::uuid[])[1 + n % 10], timestamptz '2020-01-01Z' + (${k}::int * 50000 + n / 10) * interval '1 minute', 'token', 1, 1, 'normal', 1, ${aWorker}, case when n % 100000 = 0 then 'failure' else 'success' end::run_state,
        ${new Date()}::timestamptz - (5000000 - ${k}::int * 500000 - n) * interval '100 ms', ${new Date()}::timestamptz - (5000000 - ${k}::int * 500000 - n) * interval '100 ms', ${new Date()}::timestamptz - (5000000 - ${k}::int * 500000 - n) * interval '100 ms'
      from generate_series(0, 499999) n`);
    await api.db.exec(sql`insert into token (task_id, instant, count, fire, reach, priority)
      select (${ids}::uuid[])[1 + n % 10], timestamptz '2020-01-01Z' + (${k}::int * 50000 + n / 10) * interval '1 minute', 0, 1, 1, 'normal' from generate_series(0, 499999) n`);
  }
  await api.db.exec(
    sql`insert into firing select ${job.triggers['t']}::uuid, timestamptz '2020-01-01Z' + n * interval '1 minute', 'schedule' from generate_series(0, 499999) n`,
  );
  for (const t of ['run', 'token', 'firing', 'live', 'task', 'job']) await api.pool.query(`vacuum analyze ${t}`);
  api.workers.push(
    {
      id: aWorker,
      name: '',
      addr: '',
      version: '',
      lastSeenAt: new Date(),
      running: 0,
      places: 0,
      runtimes: [],
      queues: [],
    },
    {
      id: gone,
      name: '',
      addr: '',
      version: '',
      lastSeenAt: new Date(),
      running: 0,
      places: 0,
      runtimes: [],
      queues: [],
    },
  );
  const since = new Date(Date.now() - 3600000);
  const show = async (name: string, text: string, values: unknown[]) => {
    const { rows } = await api.pool.query('explain (analyze, buffers) ' + text, values);
    console.log(name + '\n' + rows.map((r: Record<string, string>) => r['QUERY PLAN']).join('\n'));
  };
  void since;
  const spy = { ...api.db, maybeOne: async (q: { compile(): { text: string; values: unknown[] } }) => { const c = q.compile(); await show('job', c.text, c.values); return undefined; } } as never;
  await findJobWithCounts(spy, job.id, new Date());
  await api.close();
}, 900_000);
