import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  activate,
  claim,
  eventTypes,
  finish,
  fire,
  makeJob,
  type MadeJob,
  runAll,
} from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
let job: MadeJob;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const tokens = (query: object = {}) => api.call('GET /api/jobs/{id}/tokens', { params: { id: job.id }, query });
const states = async (query: object = {}) =>
  (await tokens(query)).map((row) => [row.trigger_datetime, row.task_name, row.state]);
const clear = (instant: string) =>
  api.call('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant } });

beforeEach(async () => {
  job = await makeJob(api, {
    triggers: [{ name: 't', start: day(1), period: '1d' }],
    tasks: [
      { name: 'a', depends: ['trigger/t'], retry: { max_attempts: 2, delay: '1h' } },
      { name: 'b', depends: ['task/a'], threshold: 2 },
    ],
  });
});

/** Deletes the job, so that no test claims runs of another. */
async function stop(): Promise<void> {
  await api.call('DELETE /api/jobs/{id}', { params: { id: job.id } });
}

describe('state of a token', () => {
  it('the state of a token follows its run: active, running, then its result', async () => {
    await fire(api, job.triggers['t'], day(1));
    expect(await states()).toEqual([[day(1), 'a', 'active']]);
    const runs = await claim(api);
    expect(await states()).toEqual([[day(1), 'a', 'running']]);
    await finish(api, runs);
    expect(await states()).toEqual([
      [day(1), 'a', 'success'],
      [day(1), 'b', 'waiting'],
    ]);
    await stop();
  });

  it('a token with a scheduled retry has the state retry', async () => {
    await fire(api, job.triggers['t'], day(1));
    await runAll(api, 'failure');
    expect(await states()).toEqual([[day(1), 'a', 'retry']]);
    await stop();
  });

  it('the newest run decides, and a running run goes before a queued one', async () => {
    await activate(api, job.tasks['b'], day(1));
    await runAll(api, 'error');
    await activate(api, job.tasks['b'], day(1));
    await runAll(api, 'cancelled');
    expect(await states()).toEqual([[day(1), 'b', 'cancelled']]);
    await activate(api, job.tasks['b'], day(1));
    await claim(api);
    await activate(api, job.tasks['b'], day(1));
    expect(await states()).toEqual([[day(1), 'b', 'running']]);
    await stop();
  });

  it('a cleared token is waiting until another run ends', async () => {
    await activate(api, job.tasks['b'], day(1));
    await runAll(api);
    api.advance(1_000);
    const before = await newestPosition(api.db);
    expect(await clear(day(1))).toEqual({ tokens_cleared: 1 });
    expect(await eventTypes(api.db, before)).toEqual(['tokens.cleared']);
    expect(await states()).toEqual([[day(1), 'b', 'waiting']]);
    api.advance(1_000);
    await activate(api, job.tasks['b'], day(1));
    await runAll(api, 'failure');
    expect(await states()).toEqual([[day(1), 'b', 'failure']]);
    await stop();
  });
});

describe('clearing', () => {
  it('a clear removes counts and scheduled retries', async () => {
    await fire(api, job.triggers['t'], day(1));
    await runAll(api, 'failure');
    await clear(day(1));
    expect(await api.db.rows(sql`select 1 from retry where task_id = ${job.tasks['a']}`)).toEqual([]);
    await stop();
  });

  it.each(['queued', 'running'])('a clear leaves a %s run alone, and its end counts', async (how) => {
    await fire(api, job.triggers['t'], day(1));
    const held = how === 'running' ? await claim(api) : [];
    await clear(day(1));
    await finish(api, how === 'running' ? held : await claim(api));
    expect(await states()).toEqual([
      [day(1), 'a', 'success'],
      [day(1), 'b', 'waiting'],
    ]);
    await stop();
  });

  it('a clear of an instant without tokens changes nothing and appends no event', async () => {
    const before = await newestPosition(api.db);
    expect(await clear(day(9))).toEqual({ tokens_cleared: 0 });
    expect(await eventTypes(api.db, before)).toEqual([]);
  });

  it('a clear of an unknown job is not found', async () => {
    const params = { id: newId(), instant: day(1) };
    await expect(api.call('DELETE /api/jobs/{id}/tokens/{instant}', { params })).rejects.toMatchObject({ status: 404 });
    await expect(api.call('GET /api/jobs/{id}/tokens/{instant}', { params })).rejects.toMatchObject({ status: 404 });
    await expect(api.call('GET /api/jobs/{id}/runs/{instant}', { params })).rejects.toMatchObject({ status: 404 });
  });
});

describe('listing', () => {
  it('tokens of the latest instants are listed, newest first', async () => {
    for (const n of [1, 2, 3]) await fire(api, job.triggers['t'], day(n));
    await runAll(api);
    expect(await states({ limit: 2 })).toEqual([
      [day(3), 'a', 'success'],
      [day(3), 'b', 'waiting'],
      [day(2), 'a', 'success'],
      [day(2), 'b', 'waiting'],
    ]);
    expect(await states({ before: day(2), state: 'success,failure' })).toEqual([[day(1), 'a', 'success']]);
    await stop();
  });

  it('unfinished runs are found at any instant, however old', async () => {
    await activate(api, job.tasks['b'], day(1));
    await claim(api);
    for (const n of [5, 6, 7]) await fire(api, job.triggers['t'], day(n));
    await runAll(api);
    expect(await states({ state: 'running', limit: 1 })).toEqual([[day(1), 'b', 'running']]);
    expect(await states({ state: 'success', limit: 1 })).toEqual([[day(7), 'a', 'success']]);
    await stop();
  });

  it('the overview lists states by instant and task', async () => {
    for (const n of [1, 2]) await fire(api, job.triggers['t'], day(n));
    await runAll(api);
    const overview = await api.call('GET /api/jobs/{id}/tokens-overview', { params: { id: job.id } });
    expect(overview.tasks).toEqual(['a', 'b']);
    expect(overview.tokens.map((row) => row.trigger_datetime)).toEqual([day(2), day(1)]);
    expect(overview.tokens[0]?.task_states['a']).toEqual({ task_name: 'a', task_id: job.tasks['a'], state: 'success' });
    await stop();
  });

  it('the tokens of one instant have count and threshold', async () => {
    await fire(api, job.triggers['t'], day(1));
    await runAll(api);
    const rows = await api.call('GET /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant: day(1) } });
    expect(rows.map((row) => [row.task_name, row.count, row.threshold])).toEqual([
      ['a', 0, 1],
      ['b', 1, 2],
    ]);
    await stop();
  });

  it('removed tasks have no tokens in the list, but their runs stay', async () => {
    const project = `p ${newId()}`;
    const first = await makeJob(api, { project, tasks: [{ name: 'old' }, { name: 'kept' }] });
    await activate(api, first.tasks['old'], day(1));
    await runAll(api);
    await makeJob(api, { project, tasks: [{ name: 'kept' }] });
    const params = { id: first.id, instant: day(1) };
    expect(await api.call('GET /api/jobs/{id}/tokens', { params })).toEqual([]);
    const runs = await api.call('GET /api/jobs/{id}/runs/{instant}', { params });
    expect(runs).toMatchObject([{ name: 'old', state: 'success', attempt: 1, trigger_datetime: day(1) }]);
    await stop();
  });

  it('the runs of an instant are listed by task', async () => {
    await activate(api, job.tasks['b'], day(1));
    await runAll(api);
    await activate(api, job.tasks['b'], day(1));
    await activate(api, job.tasks['a'], day(1));
    const params = { id: job.id, instant: day(1) };
    const runs = await api.call('GET /api/jobs/{id}/runs/{instant}', { params });
    expect(runs.map((run) => [run.name, run.state])).toEqual([
      ['a', 'active'],
      ['b', 'success'],
      ['b', 'active'],
    ]);
    expect(await api.call('GET /api/jobs/{id}/runs/{instant}', { params, query: { limit: 1 } })).toHaveLength(1);
    expect(runs[0]).toMatchObject({ started_datetime: null, finish_datetime: null, worker_id: null, priority: 'high' });
    await stop();
  });

  it('an instant may be given with any offset', async () => {
    await activate(api, job.tasks['b'], '2026-01-01T02:00:00+02:00');
    const path = `/api/jobs/${job.id}/tokens/2026-01-01T00:00:00Z`;
    const answer = await api.fetch('GET', path, { caller: keyOf('viewer') });
    expect(await answer.json()).toMatchObject([{ task_name: 'b', trigger_datetime: day(1) }]);
    await stop();
  });
});
