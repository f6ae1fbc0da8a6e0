/** What runs, is late, fails and comes next, and the health of the installation. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { aliveScheduler, aliveWorker, claimTask } from '../../../test/harness/explaining.ts';
import { activate, claim, finish, fire, makeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const minute = 60_000;
const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const now = (): number => api.ctx.time.now();
const iso = (ms: number): string => new Date(ms).toISOString();
const overview = () => api.as(keyOf('viewer'))('GET /api/overview');
const params = (id: string) => ({ params: { id } });

/** No runs, no failures, no workers and schedulers. */
beforeEach(async () => {
  for (const table of [sql`live`, sql`run`, sql`retry`]) await api.db.exec(sql`delete from ${table}`);
  for (const list of [api.workers, api.schedulers, api.nextTriggers]) list.splice(0);
});

describe('overview', () => {
  it('the overview of an empty tenant is empty', async () => {
    expect(await overview()).toMatchObject({
      running: 0,
      ready: 0,
      held: 0,
      retry: 0,
      late: [],
      failing: [],
      next: [],
    });
  });

  it('the overview counts running, ready and held runs, and retries', async () => {
    const retry = { max_attempts: 2, delay: '1h' };
    const job = await makeJob(api, {
      tasks: [
        { name: 'a', retry },
        { name: 'one', max_running: 1 },
      ],
    });
    const paused = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'one', max_running: 1 }] });
    await activate(api, job.tasks['a'], day(1));
    await runAll(api, 'failure');
    await activate(api, job.tasks['a'], day(2));
    await claim(api);
    await activate(api, job.tasks['a'], day(3));
    for (const n of [1, 2, 3]) await activate(api, job.tasks['one'], day(n));
    await api.call('PUT /api/jobs/{id}/paused', { ...params(paused.id), body: { paused: true } });
    // these are parked, and one of them is also at a gate
    await activate(api, paused.tasks['a'], day(1));
    await activate(api, paused.tasks['one'], day(1));
    expect(await overview()).toMatchObject({ running: 1, ready: 2, held: 4, retry: 1, counted_up_to: 10_000 });
  });

  it('counts stop at counted_up_to', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'one', max_running: 1 }] });
    const fill = (task: string | undefined, more: ReturnType<typeof sql>) =>
      api.db.exec(sql`
        insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at, worker_id, parked, gate)
        select new_id(), ${task}, timestamptz '2026-01-01' + n * interval '1 minute', 1, 1, 'normal', 'none:default',
               now(), now(), ${more}
          from generate_series(1, 10005) as n`);
    await fill(job.tasks['a'], sql`${newId()}::uuid, false, null`);
    await fill(job.tasks['a'], sql`null, false, null`);
    await fill(job.tasks['one'], sql`null, true, ${newId()}::uuid`);
    expect(await overview()).toMatchObject({ running: 10_000, ready: 10_000, held: 10_000 });
  });

  it('the overview needs a key with the right to read', async () => {
    expect((await api.fetch('GET', '/api/overview')).status).toBe(401);
    expect((await api.fetch('GET', '/api/overview', { caller: keyOf('publisher') })).status).toBe(403);
  });
});

describe('late runs and triggers', () => {
  it('a ready run that no worker takes for a minute is late, the oldest first, in any lane', async () => {
    const job = await makeJob(api, {
      project: 'p',
      name: 'late',
      tasks: [{ name: 'a' }, { name: 'other', queue: 'q' }, { name: 'one', max_running: 1 }],
    });
    await activate(api, job.tasks['one'], day(1));
    await claim(api);
    await activate(api, job.tasks['one'], day(2));
    const first = await activate(api, job.tasks['other'], day(1));
    api.advance(1_000);
    const before = now();
    const second = await activate(api, job.tasks['a'], day(1));
    const afterwards = now();
    api.advance(61_000);
    await activate(api, job.tasks['a'], day(2));
    const { late } = await overview();
    expect(late.map((each) => [each.kind, each.id])).toEqual([
      ['run', first],
      ['run', second],
    ]);
    expect(late[1]).toMatchObject({ name: 'a', job: { id: job.id, name: 'late', project: 'p' }, instant: day(1) });
    const since = Date.parse(late[1]?.since ?? '');
    expect([since >= before, since <= afterwards]).toEqual([true, true]);
    await api.call('PUT /api/jobs/{id}/paused', { ...params(job.id), body: { paused: true } });
    expect((await overview()).late).toEqual([]);
  });

  it('at most ten late runs are listed', async () => {
    const job = await makeJob(api);
    for (let n = 1; n <= 9; n++) await activate(api, job.tasks['only'], day(n));
    await activate(api, job.tasks['only'], '2026-02-01T00:00:00Z');
    await activate(api, job.tasks['only'], '2026-02-02T00:00:00Z');
    api.advance(2 * minute);
    expect((await overview()).late).toHaveLength(10);
  });

  it('a trigger with a due instant that has not fired is late, even without a scheduler', async () => {
    const start = iso(now() - 10_000);
    const trigger = { name: 't', start, period: '1h', offset: '2s' };
    const tasks = [{ name: 'a', depends: ['trigger/t'] }];
    const job = await makeJob(api, { project: 'p', name: 'overdue', triggers: [trigger], tasks });
    api.nextTriggers.push(job.triggers['t'] ?? '');
    const { late, next } = await overview();
    expect(late).toEqual([
      {
        kind: 'trigger',
        id: job.triggers['t'],
        name: 't',
        job: { id: job.id, name: 'overdue', project: 'p' },
        instant: start,
        since: iso(Date.parse(start) + 2_000),
      },
    ]);
    expect(next).toEqual([]);
    await fire(api, job.triggers['t'], start);
    // although the marks lag behind
    await api.db.exec(sql`update trigger set latest = null where id = ${job.triggers['t']}`);
    expect((await overview()).late).toEqual([]);
  });

  it('a trigger that was due seconds ago, or whose job is paused, is not late', async () => {
    const start = now() + minute;
    const job = await makeJob(api, { triggers: [{ name: 't', start: iso(start), period: '1h' }] });
    const paused = await makeJob(api, {
      paused: true,
      triggers: [{ name: 't', start: iso(now() - minute), period: '1h' }],
    });
    api.nextTriggers.push(job.triggers['t'] ?? '', paused.triggers['t'] ?? '');
    // due just now, so that a slow request is still within the seconds
    api.advance(start - now() + 1);
    expect((await overview()).late).toEqual([]);
    api.advance(5_000);
    expect((await overview()).late.map((each) => each.id)).toEqual([job.triggers['t']]);
  });
});

describe('failing tasks', () => {
  const names = async () => (await overview()).failing.map((each) => each.task.name);

  it('a task is failing from a failed run until one succeeds, the latest first', async () => {
    const job = await makeJob(api, {
      project: 'p',
      name: 'failing',
      tasks: ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name })),
    });
    const ends = [
      ['a', 'failure'],
      ['b', 'timeout'],
      ['c', 'error'],
      ['d', 'cancelled'],
      ['e', 'success'],
    ] as const;
    for (const [task, state] of ends) {
      api.advance(1_000);
      await activate(api, job.tasks[task], day(1));
      await runAll(api, state);
    }
    const { failing } = await overview();
    expect(failing.map((each) => [each.task.name, each.state])).toEqual([
      ['c', 'error'],
      ['b', 'timeout'],
      ['a', 'failure'],
    ]);
    expect(failing[0]).toMatchObject({
      job: { id: job.id, name: 'failing', project: 'p' },
      task: { id: job.tasks['c'] },
      instant: day(1),
      reason: null,
    });
    await activate(api, job.tasks['b'], day(2));
    expect(await names()).toEqual(['c', 'a']);
    const runs = await claim(api);
    expect(await names()).toEqual(['c', 'a']);
    await finish(api, runs, 'failure');
    expect(await names()).toEqual(['b', 'c', 'a']);
    api.advance(1_000);
    await activate(api, job.tasks['c'], day(1));
    await runAll(api);
    expect(await names()).toEqual(['b', 'a']);
  });

  it('a task is failing even if an older run is unfinished, but not if it will be retried', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b', retry: { max_attempts: 2, delay: '1h' } }] });
    await activate(api, job.tasks['a'], day(1));
    await claimTask(api, job.tasks['a']);
    api.advance(1_000);
    await activate(api, job.tasks['a'], day(2));
    await activate(api, job.tasks['b'], day(2));
    await runAll(api, 'failure');
    expect(await names()).toEqual(['a']);
    await api.db.exec(sql`delete from retry`);
    expect((await names()).toSorted()).toEqual(['a', 'b']);
  });

  it('a task that failed once last night is listed next to one that fails all the time', async () => {
    const job = await makeJob(api, { tasks: ['nightly', 'x', 'y', 'z'].map((name) => ({ name })) });
    await activate(api, job.tasks['nightly'], day(1));
    await runAll(api, 'failure');
    for (const name of ['x', 'y', 'z'])
      await api.db.exec(sql`
        insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, finished_at)
        select new_id(), ${job.tasks[name]}, at, 'token', 1, 1, 'normal', 1, 'failure', at, at
          from generate_series(1, 8000) as n,
               lateral (select ${new Date(now())}::timestamptz + n * interval '5 seconds' as at) as later`);
    expect(await names()).toEqual(expect.arrayContaining(['nightly', 'x', 'y', 'z']));
    await api.db.exec(sql`delete from run where task_id in (select id from task where job_id = ${job.id})`);
  });

  it('a removed task, or a task of a deleted job, is not failing', async () => {
    const tasks = [{ name: 'a' }, { name: 'b' }];
    const job = await makeJob(api, { project: 'p', name: 'shrinking', tasks });
    for (const name of ['a', 'b']) await activate(api, job.tasks[name], day(1));
    await runAll(api, 'failure');
    expect((await names()).toSorted()).toEqual(['a', 'b']);
    await makeJob(api, { project: 'p', name: 'shrinking', tasks: [{ name: 'a' }] });
    expect(await names()).toEqual(['a']);
    await api.call('DELETE /api/jobs/{id}', params(job.id));
    expect(await names()).toEqual([]);
  });
});

describe('next firings', () => {
  it('the triggers that the scheduler names are listed with their next instants, earliest first', async () => {
    const [soon, later] = [iso(now() + 5 * minute), iso(now() + 60 * minute)];
    const job = await makeJob(api, {
      project: 'p',
      name: 'next',
      triggers: [
        { name: 'later', start: later, period: '1d', offset: '-30m' },
        { name: 'soon', start: soon, period: '1d' },
        { name: 'over', start: day(1), end: day(2), period: '1d' },
      ],
    });
    const paused = await makeJob(api, { paused: true, triggers: [{ name: 't', start: soon, period: '1d' }] });
    const named = [job.triggers['over'], job.triggers['later'], job.triggers['soon'], paused.triggers['t'], newId()];
    api.nextTriggers.push(...named.flatMap((id) => id ?? []));
    aliveScheduler(api);
    const names = { id: job.id, name: 'next', project: 'p' };
    expect((await overview()).next).toEqual([
      { trigger: { id: job.triggers['soon'], name: 'soon' }, job: names, instant: soon, due: soon },
      {
        trigger: { id: job.triggers['later'], name: 'later' },
        job: names,
        instant: later,
        due: iso(Date.parse(later) - 30 * minute),
      },
    ]);
    // it has fired since the last heartbeat, so the following instant is next
    api.advance(6 * minute);
    aliveScheduler(api);
    expect((await overview()).next.map((each) => each.due)).toEqual([
      iso(Date.parse(later) - 30 * minute),
      iso(Date.parse(soon) + 1440 * minute),
    ]);
    await api.call('DELETE /api/jobs/{id}', params(job.id));
    expect((await overview()).next).toEqual([]);
  });
});

describe('health', () => {
  it('health counts workers and schedulers, and measures the latency and size of the database', async () => {
    aliveScheduler(api);
    const scheduler = { id: newId(), version: '1', nextTriggerId: null };
    api.schedulers.push(
      { ...scheduler, lastSeenAt: new Date(now()), queuedTriggers: 7 },
      { ...scheduler, lastSeenAt: new Date(now() - 2 * minute), queuedTriggers: 9 },
      { ...scheduler, lastSeenAt: new Date(now() - 61 * minute), queuedTriggers: 11 },
    );
    aliveWorker(api, { running: 3 });
    aliveWorker(api, { running: 1, places: 2 });
    aliveWorker(api, { running: 5, lastSeenAt: new Date(now() - 2 * minute) });
    const { health } = await overview();
    expect(health.schedulers).toEqual({ up: 2, gone: 1, queued_triggers: 7 });
    expect(health.workers).toEqual({ up: 2, gone: 1, places: 10, taken: 4 });
    expect(health.database.size_bytes).toBeGreaterThan(1_000_000);
    expect(health.database.latency_ms).toBeGreaterThan(0);
    expect(health.database.latency_ms).toBeLessThan(10_000);
  });
});
