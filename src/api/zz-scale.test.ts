import { it } from 'vitest';
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
  const time = async (name: string, f: () => Promise<unknown>) => {
    const ms: number[] = [];
    for (let i = 0; i < 8; i++) {
      const a = performance.now();
      await f();
      ms.push(Math.round(performance.now() - a));
    }
    console.log(name, ms.join(' '));
  };
  const id = job.id;
  const t0 = ids[0] ?? '';
  await time('tokens', () => api.call('GET /api/jobs/{id}/tokens', { params: { id } }));
  await time('tokens 25', () => api.call('GET /api/jobs/{id}/tokens', { params: { id }, query: { limit: 25 } }));
  await time('tokens before', () =>
    api.call('GET /api/jobs/{id}/tokens', { params: { id }, query: { limit: 25, before: '2020-03-01T00:00:00Z' } }),
  );
  await time('tokens running', () =>
    api.call('GET /api/jobs/{id}/tokens', { params: { id }, query: { state: 'running' } }),
  );
  await time('overview 25', () =>
    api.call('GET /api/jobs/{id}/tokens-overview', { params: { id }, query: { limit: 25 } }),
  );
  await time('job', () => api.call('GET /api/jobs/{id}', { params: { id } }));
  await time('rare job', () => api.call('GET /api/jobs/{id}', { params: { id: rare.id } }));
  await time('projects', () => api.call('GET /api/projects', {}));
  const [p] = await api.db.rows<{ id: string }>(sql`select id from project`);
  await time('project', () => api.call('GET /api/projects/{id}', { params: { id: p?.id ?? '' } }));
  await time('project jobs', () => api.call('GET /api/projects/{id}/jobs', { params: { id: p?.id ?? '' } }));
  await time('runs', () => api.call('GET /api/runs', {}));
  await time('runs of job', () => api.call('GET /api/runs', { query: { job: id } }));
  await time('runs of rare', () => api.call('GET /api/runs', { query: { job: rare.id } }));
  await time('runs of task', () => api.call('GET /api/runs', { query: { task: t0 } }));
  await time('runs failure', () => api.call('GET /api/runs', { query: { state: 'failure' } }));
  await time('runs timeout', () => api.call('GET /api/runs', { query: { state: 'timeout' } }));
  await time('runs job timeout', () => api.call('GET /api/runs', { query: { job: id, state: 'timeout' } }));
  await time('runs instant', () => api.call('GET /api/runs', { query: { instant: '2020-02-01T00:00:00Z' } }));
  await time('runs job instant', () =>
    api.call('GET /api/runs', { query: { job: id, instant: '2020-02-01T00:00:00Z' } }),
  );
  await time('durations', () => api.call('GET /api/jobs/{id}/duration', { params: { id } }));
  await time('graph', () =>
    api.call('GET /api/jobs/{id}/graph', { params: { id }, query: { trigger_datetime: '2020-02-01T00:00:00Z' } }),
  );
  await time('trigger', () => api.call('GET /api/triggers/{id}', { params: { id: job.triggers['t'] ?? '' } }));
  await time('worker', () => api.call('GET /api/workers/{id}', { params: { id: aWorker } }));
  await time('idle worker', () => api.call('GET /api/workers/{id}', { params: { id: gone } }));
  await time('job runs at', () =>
    api.call('GET /api/jobs/{id}/runs/{instant}', { params: { id, instant: '2020-02-01T00:00:00Z' } }),
  );
  await time('status', () => api.call('GET /api/status', {}));
  await api.close();
}, 900_000);
