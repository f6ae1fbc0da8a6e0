import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal } from '../../test/harness/expected.ts';
import { activate, aWorker, claim, eventTypes, finish, makeJob, runAll } from '../../test/harness/runs.ts';
import { makeTenantApi, taskOf, type TenantApi } from '../../test/harness/tenant-api.ts';
import { newestPosition } from '../events/queries.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const list = (query: object) => api.call('GET /api/runs', { query });
const ids = async (query: object) => (await list(query)).items.map((run) => run.id);
const cancel = (id: string) => api.call('POST /api/runs/{id}/cancel', { params: { id } });

describe('the list of runs', () => {
  it('has finished and unfinished ones, newest first, a page at a time', async () => {
    const job = await makeJob(api);
    const made: string[] = [];
    for (const n of [1, 2, 3, 4]) {
      made.unshift(await activate(api, job.tasks['only'], day(n)));
      if (n < 3) await runAll(api);
    }
    const first = await list({ limit: 3 });
    expect(first.items.map((run) => [run.id, run.state])).toEqual([
      [made[0], 'active'],
      [made[1], 'active'],
      [made[2], 'success'],
    ]);
    expect(first.next).toBe(made[2]);
    expect(await list({ limit: 3, cursor: first.next })).toMatchObject({ items: [{ id: made[3] }], next: null });
    await runAll(api);
  });

  it('can be of a job, a task, an instant, some states', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b' }] });
    const a = await activate(api, job.tasks['a'], day(1));
    const b = await activate(api, job.tasks['b'], day(1));
    await runAll(api, 'failure');
    const a2 = await activate(api, job.tasks['a'], day(2));
    expect(await ids({ job: job.id })).toEqual([a2, b, a]);
    expect(await ids({ task: job.tasks['a'] })).toEqual([a2, a]);
    expect(await ids({ job: job.id, task: job.tasks['b'] })).toEqual([b]);
    expect(await ids({ job: job.id, instant: day(1) })).toEqual([b, a]);
    expect(await ids({ job: job.id, state: 'active,running' })).toEqual([a2]);
    expect(await ids({ task: job.tasks['a'], state: 'failure' })).toEqual([a]);
    expect((await ids({ state: 'failure' })).slice(0, 2)).toEqual([b, a]);
    await runAll(api);
  });

  it('knows no job or task that never was', async () => {
    await expect(list({ job: newId() })).rejects.toEqual(refusal(404));
    await expect(list({ task: newId() })).rejects.toEqual(refusal(404));
  });

  it('finds everything of a task under far more runs of others', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'rare' }, { name: 'often' }] });
    const rare = await activate(api, job.tasks['rare'], day(1));
    await runAll(api);
    await api.db.exec(sql`
      insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, finished_at)
      select new_id(), ${job.tasks['often']}, ${day(1)}::timestamptz + n * interval '1 s', 'token', 1, 1, 'normal', 1,
             'success', ${day(1)}, ${day(1)}
        from generate_series(1, 100500) as n`);
    expect(await ids({ task: job.tasks['rare'] })).toEqual([rare]);
    // too many of the job to sort: a window at a time, and the way on is given
    const failed = await list({ job: job.id, state: 'failure' });
    expect(failed).toMatchObject({ items: [], next: anyText });
    expect(await list({ job: job.id, state: 'failure', cursor: failed.next })).toEqual({ items: [], next: null });
    expect(await ids({ job: job.id, cursor: failed.next, limit: 1000 })).toContain(rare);
  });
});

describe('one run', () => {
  it('shows all there is to know', async () => {
    const job = await makeJob(api, { project: 'shown', name: 'job' });
    const id = await activate(api, job.tasks['only'], day(1));
    const read = () => api.call('GET /api/runs/{id}', { params: { id } });
    expect(await read()).toMatchObject({ state: 'active', lease: 0, started_at: null, worker_id: null });
    await runAll(api, 'timeout');
    expect(await read()).toMatchObject({
      id,
      state: 'timeout',
      job: { id: job.id, name: 'job', project: 'shown' },
      task: { id: job.tasks['only'], name: 'only' },
      instant: day(1),
      version: 1,
      attempt: 1,
      priority: 'high',
      lease: 1,
      worker_id: aWorker,
      finished_at: anyText,
      exit_code: null,
    });
  });

  it('can be read by its own task, not by another', async () => {
    const job = await makeJob(api);
    await activate(api, job.tasks['only'], day(1));
    const [run] = await claim(api);
    const read = (id: string) => api.as(taskOf(run?.id ?? ''))('GET /api/runs/{id}', { params: { id } });
    expect(await read(run?.id ?? '')).toMatchObject({ state: 'running' });
    await expect(read(newId())).rejects.toEqual(refusal(403));
    if (run) await finish(api, [run]);
  });

  it('is not found when it never was', async () => {
    await expect(api.call('GET /api/runs/{id}', { params: { id: newId() } })).rejects.toEqual(refusal(404));
  });
});

describe('cancelling', () => {
  it('ends a queued run at once', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelled' });
    expect(await eventTypes(api.db, before)).toEqual(['run.finished']);
    expect(api.heard).toEqual(['wake events']);
    expect(await api.call('GET /api/runs/{id}', { params: { id } })).toMatchObject({
      state: 'cancelled',
      reason: 'cancelled by key:operator',
    });
    expect(await cancel(id)).toEqual({ id, outcome: 'finished' });
  });

  it('tells the worker of a running one', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    const runs = await claim(api);
    api.heard.splice(0);
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelling' });
    expect(api.heard).toEqual([`cancel ${id} 1`]);
    await finish(api, runs, 'cancelled');
  });

  it('drops the retry that a failed one waits for', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a', retry: { max_attempts: 2 } }] });
    const id = await activate(api, job.tasks['a'], day(1));
    await runAll(api, 'failure');
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelled' });
    expect(await api.db.rows(sql`select 1 from retry`)).toEqual([]);
  });

  it('knows no run that never was', async () => {
    await expect(cancel(newId())).rejects.toEqual(refusal(404));
  });
});
