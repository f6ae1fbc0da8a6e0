import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { activate, aWorker, claim, finish, makeJob, runAll } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { pageIn } from '../../http/client.ts';
import { newId } from '../../kernel/id.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const minute = 60_000;
const ago = (ms: number): Date => new Date(Date.now() - ms);
const worker = (id: string, lastSeenAt: Date) => ({
  id,
  name: `worker ${id.slice(-4)}`,
  addr: 'here',
  version: '1.0.0',
  lastSeenAt,
  running: 1,
  places: 8,
  runtimes: ['none', 'process'],
  queues: ['default'],
});

describe('fleet', () => {
  it('anyone may call the health check', async () => {
    const answer = await api.fetch('GET', '/healthcheck');
    expect([answer.status, await answer.text()]).toEqual([200, 'OK']);
  });

  it('the status counts projects, workers and running tasks', async () => {
    const job = await makeJob(api);
    await activate(api, job.tasks['only'], '2026-01-01T00:00:00Z');
    const runs = await claim(api);
    api.workers.push(worker(newId(), ago(0)), worker(newId(), ago(16 * minute)));
    expect(await api.call('GET /api/status')).toEqual({ num_projects: 1, num_workers: 1, running_tasks: 1 });
    await finish(api, runs);
    api.workers.splice(0);
  });

  it('workers of the last day are listed as up or gone', async () => {
    api.workers.push(
      worker(newId(), ago(minute / 2)),
      worker(newId(), ago(2 * minute)),
      worker(newId(), ago(25 * 60 * minute)),
    );
    const listed = pageIn(await api.call('GET /api/workers')).items;
    expect(await api.call('GET /api/workers', { query: { limit: 10 } })).toEqual({ items: listed, next: null });
    expect(listed.map((row) => row.status)).toEqual(['up', 'gone']);
    expect(listed[0]).toMatchObject({ running_tasks: 1, total_tasks: 8, runtimes: ['none', 'process'], addr: 'here' });
    api.workers.splice(0);
  });

  it('a worker is shown with its last runs', async () => {
    const job = await makeJob(api);
    await activate(api, job.tasks['only'], '2026-01-01T00:00:00Z');
    await runAll(api, 'failure');
    await activate(api, job.tasks['only'], '2026-01-02T00:00:00Z');
    const runs = await claim(api);
    api.workers.push(worker(aWorker, ago(0)));
    const read = (query: object) => api.call('GET /api/workers/{id}', { params: { id: aWorker }, query });
    expect((await read({})).tasks.slice(0, 2).map((run) => [run.task_name, run.state])).toEqual([
      ['only', 'running'],
      ['only', 'failure'],
    ]);
    expect((await read({ state: 'failure' })).tasks.map((run) => run.state)).toEqual(['failure']);
    expect((await read({ state: 'running' })).tasks).toHaveLength(1);
    await expect(api.call('GET /api/workers/{id}', { params: { id: newId() } })).rejects.toMatchObject({ status: 404 });
    await finish(api, runs);
  });

  it('schedulers of the last hour are listed with the trigger they wait for', async () => {
    const job = await makeJob(api, { triggers: [{ name: 't', start: '2026-01-01T00:00:00Z', period: '1d' }] });
    const next = job.triggers['t'] ?? null;
    const scheduler = { version: '1.0.0', queuedTriggers: 3 };
    api.schedulers.push(
      { ...scheduler, id: newId(), lastSeenAt: ago(1_000), nextTriggerId: next },
      { ...scheduler, id: newId(), lastSeenAt: ago(2 * minute), nextTriggerId: null },
      { ...scheduler, id: newId(), lastSeenAt: ago(61 * minute), nextTriggerId: null },
    );
    const listed = await api.call('GET /api/schedulers');
    expect(listed.map((row) => row.status)).toEqual(['up', 'gone']);
    expect(listed[0]).toMatchObject({
      queued_triggers: 3,
      waiting_for_trigger_id: next,
      waiting_for_trigger_job_id: job.id,
    });
    expect(listed[1]).toMatchObject({ waiting_for_trigger_id: null, waiting_for_trigger_job_id: null });
  });
});
