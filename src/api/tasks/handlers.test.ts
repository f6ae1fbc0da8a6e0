import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { activate, claim, eventTypes, fire, makeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, taskOf, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const many = (id: string | undefined, body: object) =>
  api.call('POST /api/tasks/{id}/tokens', { params: { id: id ?? '' }, body });

describe('definition of a task', () => {
  it('the definition is that of the document', async () => {
    const docker = { image: 'busybox', args: ['-c', 'true'], env: ['A=1', 'B=x=y'] };
    const tasks = [{ name: 'boxed', docker, timeout: '1m 500ms', queue: 'big' }, { name: 'plain' }];
    const job = await makeJob(api, { project: 'defined', name: 'job', tasks });
    const read = (name: string) => api.call('GET /api/tasks/{id}', { params: { id: job.tasks[name] ?? '' } });
    expect(await read('boxed')).toMatchObject({
      task_name: 'boxed',
      job_id: job.id,
      job_name: 'job',
      project_name: 'defined',
      runtime: 'docker',
      queue: 'big',
      image: 'busybox',
      args: ['-c', 'true'],
      env: ['A=1', 'B=x=y'],
      paused: false,
      threshold: 1,
      timeout: { secs: 60, nanos: 500_000_000 },
    });
    expect(await read('plain')).toMatchObject({
      runtime: 'none',
      image: null,
      args: null,
      env: null,
      timeout: { secs: 14_400 },
    });
  });

  it('the definition never shows values of the stash', async () => {
    const env = { SECRET: { stash: 'token' } };
    const job = await makeJob(api, { tasks: [{ name: 'a', docker: { image: 'i', args: [], env } }] });
    const definition = await api.call('GET /api/tasks/{id}', { params: { id: job.tasks['a'] ?? '' } });
    expect(definition.env).toEqual(['SECRET=stash:token']);
  });

  it('the definition may be read by the task itself and by root, but not by other tasks', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'mine' }, { name: 'other' }] });
    await activate(api, job.tasks['mine'], day(1));
    const [run] = await claim(api);
    const read = (name: string, caller = taskOf(run?.id ?? '')) =>
      api.as(caller)('GET /int-api/tasks/{id}', { params: { id: job.tasks[name] ?? '' } });
    expect(await read('mine')).toMatchObject({ task_name: 'mine' });
    await expect(read('other')).rejects.toEqual(refusal(403));
    await expect(read('mine', taskOf(newId()))).rejects.toEqual(refusal(403));
    expect(await read('other', keyOf('root'))).toMatchObject({ task_name: 'other' });
  });

  it('the definition of a removed task is not found', async () => {
    const project = `p ${newId()}`;
    const job = await makeJob(api, { project, tasks: [{ name: 'old' }] });
    await makeJob(api, { project, tasks: [{ name: 'new' }] });
    const params = { id: job.tasks['old'] ?? '' };
    await expect(api.call('GET /api/tasks/{id}', { params })).rejects.toEqual(refusal(404));
    await expect(activate(api, params.id, day(1))).rejects.toEqual(refusal(404));
    await expect(activate(api, newId(), day(1))).rejects.toEqual(refusal(404));
    await expect(many(params.id, { first: day(1) })).rejects.toEqual(refusal(404));
  });
});

describe('activating one token', () => {
  it('an activation creates a run at once, even if the task waits for others', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a'], threshold: 3 }] });
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    const run = await activate(api, job.tasks['b'], day(1));
    expect(await eventTypes(api.db, before)).toEqual(['run.created']);
    expect(api.heard).toEqual(['ready', 'events']);
    expect((await claim(api)).map((row) => row.id)).toEqual([run]);
  });

  it('an activation has high priority by default, and needs no body', async () => {
    const job = await makeJob(api);
    const path = `/api/tasks/${job.tasks['only']}/tokens/${day(1)}`;
    expect((await api.fetch('PUT', path, { caller: keyOf('operator') })).status).toBe(201);
    await api.fetch('PUT', path, { caller: keyOf('operator'), body: '{"priority": "low"}' });
    const runs = await api.call('GET /api/tasks/{id}/runs/{instant}', {
      params: { id: job.tasks['only'] ?? '', instant: day(1) },
    });
    expect(runs.map((run) => run.priority)).toEqual(['high', 'low']);
    expect((await api.fetch('PUT', path, { caller: keyOf('operator'), body: '{"priority": "urgent"}' })).status).toBe(
      400,
    );
    await runAll(api);
  });

  it('an activated run waits while the job is paused', async () => {
    const job = await makeJob(api, { paused: true });
    await activate(api, job.tasks['only'], day(1));
    expect(await claim(api)).toEqual([]);
  });
});

describe('activating many tokens', () => {
  it('existing tokens between the exclusive bounds are activated', async () => {
    const job = await makeJob(api);
    for (const n of [1, 2, 3, 4]) await activate(api, job.tasks['only'], day(n));
    await runAll(api);
    expect(await many(job.tasks['only'], { first: day(1), last: day(4) })).toEqual({ cleared: 2 });
    const queued = await api.db.rows(
      sql`select instant, priority from live where task_id = ${job.tasks['only']} order by 1`,
    );
    expect(queued).toEqual([2, 3].map((n) => ({ instant: new Date(day(n)), priority: 'backfill' })));
    await runAll(api);
  });

  it('only_failed activates tokens in failure, timeout and error', async () => {
    const job = await makeJob(api);
    for (const [n, state] of [
      [1, 'success'],
      [2, 'failure'],
      [3, 'timeout'],
      [4, 'error'],
      [5, 'cancelled'],
    ] as const) {
      await activate(api, job.tasks['only'], day(n));
      await runAll(api, state);
    }
    expect(await many(job.tasks['only'], { only_failed: true, priority: 'low' })).toEqual({ cleared: 3 });
    expect(await many(job.tasks['only'], { only_failed: true })).toEqual({ cleared: 0 });
    await runAll(api);
  });

  it('thousands of tokens are activated in batches', async () => {
    const job = await makeJob(api);
    await api.db.exec(sql`
      insert into token (task_id, instant, count, fire, reach, priority)
      select ${job.tasks['only']}, ${day(1)}::timestamptz + n * interval '1 minute', 0, 0, 1, 'normal'
        from generate_series(1, 2500) as n`);
    api.heard.splice(0);
    expect(await many(job.tasks['only'], { first: day(1) })).toEqual({ cleared: 2500 });
    expect(api.heard.filter((line) => line === 'ready')).toEqual(['ready', 'ready', 'ready']);
    await api.call('DELETE /api/jobs/{id}', { params: { id: job.id } });
  });

  it('a request without any bound is rejected', async () => {
    const job = await makeJob(api);
    await expect(many(job.tasks['only'], {})).rejects.toMatchObject({
      status: 400,
      problem: { faults: [{ path: 'body' }] },
    });
  });
});

describe('runs of a token', () => {
  it('the runs of a token are listed in the order in which they were queued', async () => {
    const job = await makeJob(api);
    const first = await activate(api, job.tasks['only'], day(1));
    await runAll(api, 'failure');
    const second = await activate(api, job.tasks['only'], day(1));
    const params = { id: job.tasks['only'] ?? '', instant: day(1) };
    const runs = await api.call('GET /api/tasks/{id}/runs/{instant}', { params });
    expect(runs.map((run) => [run.task_run_id, run.state])).toEqual([
      [first, 'failure'],
      [second, 'active'],
    ]);
    const unknown = { id: newId(), instant: day(1) };
    await expect(api.call('GET /api/tasks/{id}/runs/{instant}', { params: unknown })).rejects.toEqual(refusal(404));
    await runAll(api);
  });
});

describe('triggers', () => {
  it('a trigger is returned with the results of its latest instants', async () => {
    const retry = { max_attempts: 2, delay: '1h' };
    const job = await makeJob(api, {
      project: 'triggered',
      name: 'job',
      triggers: [{ name: 't', start: day(1), period: '1d' }],
      tasks: [
        { name: 'a', depends: ['trigger/t'], retry },
        { name: 'b', depends: ['task/a'], threshold: 2 },
      ],
    });
    for (const [n, state] of [
      [1, 'success'],
      [2, 'failure'],
      [3, 'error'],
    ] as const) {
      await fire(api, job.triggers['t'], day(n));
      await runAll(api, state);
    }
    await fire(api, job.triggers['t'], day(4));
    const read = (query: object = {}) =>
      api.call('GET /api/triggers/{id}', { params: { id: job.triggers['t'] ?? '' }, query });
    const shown = await read();
    expect(shown).toMatchObject({
      trigger_name: 't',
      job_id: job.id,
      project_name: 'triggered',
      period: 86_400,
      latest_trigger_datetime: day(4),
    });
    expect(shown.times).toEqual([
      { trigger_datetime: day(4), success: 0, running: 1, failure: 0, waiting: 0 },
      { trigger_datetime: day(3), success: 0, running: 0, failure: 1, waiting: 0 },
      { trigger_datetime: day(2), success: 0, running: 0, failure: 0, waiting: 1 },
      { trigger_datetime: day(1), success: 1, running: 0, failure: 0, waiting: 1 },
    ]);
    expect((await read({ before: day(3), limit: 1 })).times).toMatchObject([{ trigger_datetime: day(2) }]);
    await api.call('DELETE /api/jobs/{id}', { params: { id: job.id } });
    await expect(read()).rejects.toEqual(refusal(404));
  });

  it('an unknown trigger is not found', async () => {
    await expect(api.call('GET /api/triggers/{id}', { params: { id: newId() } })).rejects.toEqual(refusal(404));
  });
});
