import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { activate, claim, finish, fire, makeJob, type MadeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { type TokenState, tokenStates } from './endpoints.ts';
import { instantState } from './handlers.ts';

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
const retry = { max_attempts: 2, delay: '1h' };
const chain = (first: object = {}, more: object = {}): Promise<MadeJob> =>
  makeJob(api, {
    triggers: [{ name: 't', start: day(1), period: '1d' }],
    tasks: [
      { name: 'a', depends: ['trigger/t'], ...first },
      { name: 'b', depends: ['task/a'] },
    ],
    ...more,
  });
const list = (job: MadeJob, query: object = {}) =>
  api.call('GET /api/jobs/{id}/instants', { params: { id: job.id }, query });
const states = async (job: MadeJob) => (await list(job)).items.map((item) => [item.instant, item.state]);
const nonzero = (tasks: Record<string, number>) => Object.fromEntries(Object.entries(tasks).filter(([, n]) => n > 0));

describe('state of an instant', () => {
  const none = Object.fromEntries(tokenStates.map((state) => [state, 0])) as Record<TokenState, number>;
  it.each<[Partial<Record<TokenState, number>>, string]>([
    [{ success: 3 }, 'success'],
    [{ success: 3, waiting: 1 }, 'waiting'],
    [{ success: 3, waiting: 1, cancelled: 1 }, 'cancelled'],
    [{ success: 3, cancelled: 1, failure: 1, waiting: 1 }, 'failure'],
    [{ success: 1, timeout: 1 }, 'failure'],
    [{ success: 1, error: 1 }, 'failure'],
    [{ failure: 1, retry: 1 }, 'retry'],
    [{ failure: 1, retry: 1, ready: 1 }, 'ready'],
    [{ failure: 1, retry: 1, running: 1 }, 'running'],
  ])('the state of an instant with tokens %j is %s', (tasks, state) =>
    expect(instantState({ ...none, ...tasks })).toBe(state),
  );

  it('the state and times of an instant follow its runs', async () => {
    const job = await chain();
    await fire(api, job.triggers['t'], day(1));
    const [queued] = (await list(job)).items;
    expect(queued).toMatchObject({
      instant: day(1),
      state: 'ready',
      started_at: null,
      finished_at: null,
      active: null,
    });
    expect(nonzero(queued?.tasks ?? {})).toEqual({ ready: 1 });
    const runs = await claim(api);
    expect(nonzero((await list(job)).items[0]?.tasks ?? {})).toEqual({ running: 1 });
    await finish(api, runs);
    const [half] = (await list(job)).items;
    expect([half?.state, half?.finished_at]).toEqual(['ready', null]);
    expect(nonzero(half?.tasks ?? {})).toEqual({ success: 1, ready: 1 });
    const last = await runAll(api);
    const [over] = (await list(job)).items;
    const times = await Promise.all(
      [runs[0], last[0]].map((run) => api.call('GET /api/runs/{id}', { params: { id: run?.id ?? '' } })),
    );
    expect(over).toMatchObject({
      state: 'success',
      started_at: times[0]?.started_at,
      finished_at: times[1]?.finished_at,
    });
  });

  it('an instant with a retry, a failure and a clear has the states retry, failure and waiting', async () => {
    const job = await chain({ retry });
    await fire(api, job.triggers['t'], day(1));
    await runAll(api, 'failure');
    expect(await states(job)).toEqual([[day(1), 'retry']]);
    await activate(api, job.tasks['a'], day(1));
    await runAll(api, 'timeout');
    const params = { id: job.id, instant: day(1) };
    await api.db.exec(sql`delete from retry`);
    expect(await states(job)).toEqual([[day(1), 'failure']]);
    api.advance(1);
    await api.call('DELETE /api/jobs/{id}/tokens/{instant}', { params });
    expect((await list(job)).items).toMatchObject([{ state: 'waiting', started_at: null, finished_at: null }]);
    api.advance(1);
    const again = await activate(api, job.tasks['a'], day(1));
    await runAll(api);
    await runAll(api);
    const { started_at } = await api.call('GET /api/runs/{id}', { params: { id: again } });
    expect((await list(job)).items).toMatchObject([{ state: 'success', started_at }]);
  });

  it('the instants of a job with a limit say whether they are active', async () => {
    const job = await chain({}, { max_active_instants: 1 });
    for (const n of [1, 2]) await fire(api, job.triggers['t'], day(n));
    const active = async () => (await list(job)).items.map((item) => item.active);
    expect(await active()).toEqual([false, true]);
    await runAll(api);
    await runAll(api);
    expect(await active()).toEqual([true, false]);
  });
});

describe('list of instants', () => {
  it('instants are listed newest first, each once, page by page, whichever tasks have a token', async () => {
    const job = await chain();
    for (const n of [1, 2, 3, 4, 5]) await fire(api, job.triggers['t'], day(n));
    await finish(api, await claim(api, 2));
    await activate(api, job.tasks['b'], day(9));
    const first = await list(job, { limit: 3 });
    expect([first.items.map((item) => item.instant), first.next]).toEqual([[day(9), day(5), day(4)], day(4)]);
    const second = await list(job, { limit: 3, cursor: first.next });
    expect([second.items.map((item) => item.instant), second.next]).toEqual([[day(3), day(2), day(1)], null]);
    await expect(list({ ...job, id: newId() })).rejects.toEqual(refusal(404));
    expect(
      (await api.as(keyOf('viewer'))('GET /api/jobs/{id}/instants', { params: { id: job.id } })).items,
    ).toHaveLength(6);
  });
});

describe('activation by filter', () => {
  const ask = (job: MadeJob, body: object) =>
    api.call('POST /api/jobs/{id}/activate', { params: { id: job.id }, body });

  /** Day 1 failed, day 2 succeeded, day 3 timed out, day 4 waits to be retried, day 5 is queued. */
  async function mixed(): Promise<MadeJob> {
    const job = await chain({ retry: { max_attempts: 2, delay: '1h', on: ['error'] } });
    const ends = ['failure', 'success', 'timeout', 'error'];
    for (const [i, state] of ends.entries()) {
      await fire(api, job.triggers['t'], day(i + 1));
      await runAll(api, state);
      await runAll(api);
    }
    await fire(api, job.triggers['t'], day(5));
    return job;
  }
  const queued = async (job: MadeJob) => {
    const rows = await api.db.rows<{ name: string; instant: Date; priority: string }>(sql`
      select task.name, live.instant, live.priority from live join task on task.id = live.task_id
       where task.job_id = ${job.id} order by task.name, live.instant, live.id`);
    return rows.map((row) => `${row.name} ${row.instant.getUTCDate()} ${row.priority}`);
  };

  it('only failed tokens are run again, once', async () => {
    const job = await mixed();
    api.heard.splice(0);
    expect(await ask(job, { states: ['failure', 'timeout', 'error'] })).toEqual({ dry_run: false, tokens: 2 });
    expect(await queued(job)).toEqual(['a 1 backfill', 'a 3 backfill', 'a 5 normal']);
    expect(api.heard).toEqual(['ready', 'events']);
    expect(await ask(job, { states: ['failure', 'timeout', 'error'] })).toEqual({ dry_run: false, tokens: 0 });
  });

  it('concurrent activations create one run of each token', async () => {
    const job = await mixed();
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask(job, { states: ['failure', 'timeout'] })));
    expect(answers.reduce((sum, answer) => sum + answer.tokens, 0)).toBe(2);
    expect(await queued(job)).toEqual(['a 1 backfill', 'a 3 backfill', 'a 5 normal']);
  });

  it('tokens are found by task, range and instants; queued ones are left alone, and waiting retries replaced', async () => {
    const job = await mixed();
    expect(await ask(job, { tasks: ['a'], first: day(4), last: day(5), priority: 'high' })).toMatchObject({
      tokens: 1,
    });
    expect(await queued(job)).toEqual(['a 4 high', 'a 5 normal']);
    expect(await api.db.rows(sql`select 1 from retry`)).toEqual([]);
    expect(await ask(job, { instants: [day(2), day(8)] })).toMatchObject({ tokens: 2 });
    expect(await queued(job)).toEqual(['a 2 backfill', 'a 4 high', 'a 5 normal', 'b 2 backfill']);
    const dry = (state: string) => ask(job, { states: [state], first: day(5), dry_run: true });
    expect(await dry('active')).toEqual(await dry('ready'));
    expect(await ask(job, { states: ['ready'], first: day(5) })).toMatchObject({ tokens: 1 });
    expect((await queued(job)).filter((row) => row.startsWith('a 5'))).toEqual(['a 5 normal', 'a 5 backfill']);
  });

  it('a dry run lists the tokens and activates none', async () => {
    const job = await mixed();
    const answer = await ask(job, { last: day(2), dry_run: true });
    expect(answer).toEqual({
      dry_run: true,
      tokens: 3,
      items: [
        { task_id: job.tasks['a'], task: 'a', instant: day(1), state: 'failure' },
        { task_id: job.tasks['a'], task: 'a', instant: day(2), state: 'success' },
        { task_id: job.tasks['b'], task: 'b', instant: day(2), state: 'success' },
      ],
    });
    expect(await queued(job)).toEqual(['a 5 normal']);
  });

  it('any number of tokens is activated in batches', async () => {
    const job = await chain();
    await api.db.exec(sql`
      insert into token (task_id, instant, count, fire, reach, priority)
      select ${job.tasks['a']}, ${day(1)}::timestamptz + n * interval '1 hour', 0, 0, 1, 'normal'
        from generate_series(1, 2500) as n`);
    expect(await ask(job, { states: ['waiting'] })).toMatchObject({ tokens: 2500 });
    expect(await queued(job)).toHaveLength(2500);
  });

  it('a wrong filter is rejected with its path', async () => {
    const job = await chain();
    await expect(ask(job, {})).rejects.toMatchObject({ status: 400, message: textWith('at least one of') });
    await expect(ask(job, { tasks: ['a', 'x'] })).rejects.toMatchObject({
      status: 400,
      problem: { faults: [{ path: 'body.tasks[1]', message: textWith('its tasks: a, b') }] },
    });
    await expect(ask(job, { states: ['lost'] })).rejects.toMatchObject({
      status: 400,
      problem: { faults: [{ path: 'body.states[0]' }] },
    });
    await expect(ask({ ...job, id: newId() }, { states: ['failure'] })).rejects.toEqual(refusal(404));
  });
});
