import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal, textWith } from '../../../test/harness/expected.ts';
import { activate, claim, eventTypes, finish, fire, makeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const runNow = (id: string, body: object = {}) => api.call('POST /api/jobs/{id}/run', { params: { id }, body });
const pause = (id: string, paused: boolean) =>
  api.call('PUT /api/jobs/{id}/paused', { params: { id }, body: { paused } });
const run = (id: string) => api.call('GET /api/runs/{id}', { params: { id } });

describe('running a job now', () => {
  const tasks = [{ name: 'first' }, { name: 'beside' }, { name: 'second', depends: ['task/first'] }];

  it('every task that waits for no other task of the job gets a run', async () => {
    const job = await makeJob(api, { tasks });
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    const { instant, runs } = await runNow(job.id);
    expect(Math.abs(Date.parse(instant) - Date.now())).toBeLessThan(60_000);
    const names = await Promise.all(runs.map(async (id) => (await run(id)).task?.name));
    expect(new Set(names)).toEqual(new Set(['beside', 'first']));
    expect(await eventTypes(api.db, before)).toEqual(['run.created', 'run.created', 'job.run']);
    expect(api.heard).toEqual(['ready', 'events']);
    await runAll(api);
    expect(await runAll(api)).toMatchObject([{ task_id: job.tasks['second'] }]);
  });

  it('the parameters are stored, and others are rejected for the same instant', async () => {
    const job = await makeJob(api);
    await runNow(job.id, { instant: day(1), params: { a: 1, b: [2] } });
    await runNow(job.id, { instant: day(1), params: { b: [2], a: 1 } });
    await expect(runNow(job.id, { instant: day(1), params: { a: 2 } })).rejects.toEqual(refusal(409));
    const kept = await api.db.rows(sql`select params from instant_params where job_id = ${job.id}`);
    expect(kept).toEqual([{ params: { a: 1, b: [2] } }]);
    expect(await runAll(api)).toHaveLength(2);
  });

  it.each([
    ['{"params": {"x": 12345678901234567890}}', 'body.params.x', 'no longer exact'],
    ['{"params": {"x": [-9007199254740993]}}', 'body.params.x.0', 'no longer exact'],
    ['{"params": {"x": {"y": 1e400}}}', 'body.params.x.y', 'finite'],
    ['{"params": {"x": {"__proto__": 1}}}', 'body.params.x.__proto__', 'name that may be used'],
    ['{"params": {"__proto__": {"x": 1}}}', 'body.params.__proto__', 'name that may be used'],
    [`{"params": {"x": "${'x'.repeat(262_144)}"}}`, 'body.params', 'at most 262144 are allowed'],
  ])('params that cannot be stored exactly are rejected: %.40s', async (body, path, message) => {
    const job = await makeJob(api);
    const headers = { 'content-type': 'application/json' };
    const answer = await api.fetch('POST', `/api/jobs/${job.id}/run`, { caller: keyOf('operator'), body, headers });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ faults: [{ path, message: textWith(message) }] });
    expect(await api.db.rows(sql`select 1 from instant_params where job_id = ${job.id}`)).toEqual([]);
  });

  it('each of many concurrent runs gets its own instant', async () => {
    const job = await makeJob(api);
    const started = await Promise.all([1, 2, 3, 4, 5].map((n) => runNow(job.id, { params: { n } })));
    expect(new Set(started.map(({ instant }) => instant)).size).toBe(5);
    await runAll(api);
  });

  it('a job that depends on its own earlier runs starts with the tasks that wait only for other instants', async () => {
    const job = await makeJob(api, {
      tasks: [
        { name: 'start', depends: ['task/end@1d'], threshold: 1 },
        { name: 'end', depends: ['task/start'] },
      ],
    });
    const { runs } = await runNow(job.id);
    expect((await run(runs[0] ?? '')).task?.name).toBe('start');
    // the job would never end
    await api.call('DELETE /api/jobs/{id}', { params: { id: job.id } });
  });

  it('a job that is paused, has no tasks, or has no first task cannot be run', async () => {
    const paused = await makeJob(api, { paused: true });
    await expect(runNow(paused.id)).rejects.toMatchObject({ status: 409, message: textWith('paused') });
    const bare = await makeJob(api, { tasks: [] });
    await expect(runNow(bare.id)).rejects.toMatchObject({ status: 409, message: textWith('no tasks') });
    const circle = await makeJob(api, {
      tasks: [
        { name: 'a', depends: ['task/b'] },
        { name: 'b', depends: ['task/a'] },
      ],
    });
    await expect(runNow(circle.id)).rejects.toMatchObject({
      status: 409,
      message: textWith('waits for'),
    });
    await expect(runNow(newId())).rejects.toEqual(refusal(404));
    expect(await claim(api)).toEqual([]);
  });

  it('bad input is rejected with its path', async () => {
    const job = await makeJob(api);
    await expect(runNow(job.id, { instant: 'soon' })).rejects.toMatchObject({
      status: 400,
      problem: { faults: [{ path: 'body.instant' }] },
    });
  });
});

describe('pausing', () => {
  it('a pause parks queued runs and holds new ones, and an unpause releases both', async () => {
    const job = await makeJob(api, {
      triggers: [{ name: 't', start: day(1), period: '1d' }],
      tasks: [{ name: 'a', depends: ['trigger/t'] }],
    });
    await fire(api, job.triggers['t'], day(1));
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    await pause(job.id, true);
    expect(await api.call('GET /api/jobs/{id}/paused', { params: { id: job.id } })).toBe(true);
    expect(await eventTypes(api.db, before)).toEqual(['job.paused']);
    expect(api.heard).toEqual([`triggers ["${job.id}"]`, 'tokens', 'events']);
    await fire(api, job.triggers['t'], day(2));
    expect(await claim(api)).toEqual([]);
    expect(await api.db.rows(sql`select 1 from held where task_id = ${job.tasks['a']}`)).toHaveLength(1);
    api.heard.splice(0);
    await pause(job.id, false);
    expect(api.heard).toContain('ready');
    expect(await claim(api)).toHaveLength(1);
    await api.db.exec(sql`select release_tokens(10, ${new Date()})`);
    await finish(api, await claim(api));
  });

  it('a repeated pause changes nothing and appends no event', async () => {
    const job = await makeJob(api);
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    await pause(job.id, false);
    expect([await eventTypes(api.db, before), api.heard]).toEqual([[], []]);
    await expect(pause(newId(), true)).rejects.toEqual(refusal(404));
  });

  it('an unpause does not revive removed tasks', async () => {
    const project = `p ${newId()}`;
    const job = await makeJob(api, { project, paused: true, tasks: [{ name: 'old' }, { name: 'kept' }] });
    await makeJob(api, { project, tasks: [{ name: 'kept' }] });
    await pause(job.id, false);
    const rows = await api.db.rows(sql`select name, paused from task where job_id = ${job.id} order by name`);
    expect(rows).toEqual([
      { name: 'kept', paused: false },
      { name: 'old', paused: true },
    ]);
  });
});

describe('deleting a job', () => {
  it('a deletion cancels queued runs, kills running ones, drops tokens and retries, and keeps the history', async () => {
    const retry = { max_attempts: 2, delay: '1h' };
    const job = await makeJob(api, {
      triggers: [{ name: 't', start: day(1), period: '1d' }],
      tasks: [
        { name: 'a', depends: ['trigger/t'], retry },
        { name: 'b', depends: ['task/a'] },
      ],
    });
    const finished = await activate(api, job.tasks['a'], day(1));
    await runAll(api, 'failure');
    await activate(api, job.tasks['a'], day(2));
    const [running] = await claim(api);
    const queued = await activate(api, job.tasks['a'], day(3));
    await api.db.exec(sql`
      insert into held (task_id, instant, reason)
      values (${job.tasks['b']}, ${day(4)}, 'paused')`);
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    await api.call('DELETE /api/jobs/{id}', { params: { id: job.id } });

    expect(await eventTypes(api.db, before)).toEqual(['run.finished', 'job.deleted']);
    expect(api.heard).toEqual([
      `triggers ["${job.id}"]`,
      `cancel ${JSON.stringify({ tenant: api.ctx.tenant.id, run: running?.id, lease: 1 })}`,
      'events',
    ]);
    expect(await run(queued)).toMatchObject({
      state: 'cancelled',
      reason: 'job deleted',
      finished_at: anyText,
    });
    expect(await run(finished)).toMatchObject({ state: 'failure', job: { id: job.id } });
    expect(await run(running?.id ?? '')).toMatchObject({ state: 'running' });
    const left = await api.db.one(sql`
      select (select count(*) from live where cancel) as to_kill,
             (select count(*) from held) as held, (select count(*) from retry) as retries,
             (select count(*) from task_edge) as edges, (select count(*) from trigger_edge) as trigger_edges,
             (select bool_and(paused and removed_at is not null) from task where job_id = ${job.id}) as stopped,
             (select bool_and(removed_at is not null) from trigger where job_id = ${job.id}) as silent`);
    expect(left).toMatchObject({ to_kill: 1, held: 0, retries: 0, stopped: true, silent: true });
    const edges = await api.db.rows(sql`
      select 1 from task_edge where parent_id = any (${Object.values(job.tasks)}::uuid[])
      union all
      select 1 from trigger_edge where trigger_id = ${job.triggers['t']}`);
    expect(edges).toEqual([]);
    if (running) await finish(api, [running], 'cancelled');
    expect(await claim(api)).toEqual([]);
  });

  it('a deleted job is not found, and cannot be deleted twice', async () => {
    const project = `p ${newId()}`;
    const job = await makeJob(api, { project, name: 'gone' });
    const params = { id: job.id };
    await api.call('DELETE /api/jobs/{id}', { params });
    await expect(api.call('DELETE /api/jobs/{id}', { params })).rejects.toEqual(refusal(404));
    await expect(api.call('GET /api/jobs', { query: { project, name: 'gone' } })).rejects.toEqual(refusal(404));
    await expect(activate(api, job.tasks['only'], day(1))).rejects.toEqual(refusal(404));
    await expect(runNow(job.id)).rejects.toEqual(refusal(404));
    expect((await makeJob(api, { project, name: 'gone' })).id).not.toBe(job.id);
  });

  it('a deletion removes edges to tasks of other jobs', async () => {
    const project = `p ${newId()}`;
    const up = await makeJob(api, { project, name: 'up', tasks: [{ name: 'a' }] });
    const down = await makeJob(api, { project, name: 'down', tasks: [{ name: 'b', depends: ['up/task/a'] }] });
    await api.call('DELETE /api/jobs/{id}', { params: { id: up.id } });
    const { nodes, edges } = await api.call('GET /api/jobs/{id}/graph', { params: { id: down.id } });
    expect([nodes.length, edges]).toEqual([1, []]);
  });

  it('concurrent deletions delete once, and do not deadlock with the stages', async () => {
    const job = await makeJob(api, {
      triggers: [{ name: 't', start: day(1), period: '1d' }],
      tasks: Array.from({ length: 5 }, (_, i) => ({ name: `t${i}`, depends: ['trigger/t'] })),
    });
    const params = { id: job.id };
    const outcomes = await Promise.allSettled([
      ...Array.from({ length: 6 }, (_, i) => fire(api, job.triggers['t'], day(i + 1))),
      claim(api, 5),
      api.call('DELETE /api/jobs/{id}', { params }),
      api.call('DELETE /api/jobs/{id}', { params }),
      ...Array.from({ length: 3 }, () => claim(api, 5)),
    ]);
    const failures = outcomes
      .filter((outcome) => outcome.status === 'rejected')
      .map((outcome): unknown => outcome.reason);
    expect(failures).toEqual([refusal(404)]);
    const deleted = await api.db.rows(sql`select 1 from event where type = 'job.deleted' and subject = ${job.id}`);
    expect(deleted).toHaveLength(1);
  });

  it('a sweep removes runs that were created during the deletion', async () => {
    const job = await makeJob(api);
    const stray = await activate(api, job.tasks['only'], day(1));
    await api.db.exec(sql`update task set removed_at = ${new Date()}, paused = true where id = ${job.tasks['only']}`);
    expect(await claim(api)).toEqual([]);
    await api.db.exec(sql`select retire_strays(10, ${new Date()})`);
    expect(await run(stray)).toMatchObject({ state: 'cancelled', reason: 'task removed' });
  });
});
