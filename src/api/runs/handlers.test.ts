import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal } from '../../../test/harness/expected.ts';
import { activate, aWorker, claim, eventTypes, finish, makeJob, runAll } from '../../../test/harness/runs.ts';
import { makeTenantApi, taskOf, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;
const list = (query: object) => api.call('GET /api/runs', { query });
const ids = async (query: object) => (await list(query)).items.map((run) => run.id);
const cancel = (id: string) => api.call('POST /api/runs/{id}/cancel', { params: { id } });

describe('list of runs', () => {
  it('finished and unfinished runs are listed, newest first, a page at a time', async () => {
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

  it('runs can be filtered by job, task, instant and states', async () => {
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
    expect(await ids({ job: job.id, state: 'ready' })).toEqual([a2]);
    expect(await ids({ task: job.tasks['a'], state: 'failure' })).toEqual([a]);
    expect((await ids({ state: 'failure' })).slice(0, 2)).toEqual([b, a]);
    await runAll(api);
  });

  it('an unknown job or task is not found', async () => {
    await expect(list({ job: newId() })).rejects.toEqual(refusal(404));
    await expect(list({ task: newId() })).rejects.toEqual(refusal(404));
  });

  it('runs of a job are listed once each: unfinished ones first, then the latest ended, a page at a time', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b' }] });
    const made: string[] = [];
    for (const n of [1, 2, 3, 4, 5]) made.unshift(await activate(api, job.tasks[n % 2 ? 'a' : 'b'], day(n)));
    const claimed = await claim(api);
    const by = new Map(claimed.map((run) => [run.id, run]));
    const [first, second, third, fourth, fifth] = made.map((id) => by.get(id)).filter((run) => run !== undefined);
    // the run that was queued last ends first; two runs end together
    await finish(
      api,
      [first, second].filter((run) => run !== undefined),
    );
    api.advance(1_000);
    await finish(
      api,
      [fifth].filter((run) => run !== undefined),
    );
    const order = [third?.id, fourth?.id, fifth?.id, first?.id, second?.id];
    expect(await ids({ job: job.id })).toEqual(order);
    for (const limit of [1, 2, 3]) {
      const seen: string[] = [];
      let cursor: string | null | undefined;
      do {
        const page = await list({ job: job.id, limit, cursor: cursor ?? undefined });
        seen.push(...page.items.map((run) => run.id));
        cursor = page.next;
      } while (cursor !== null);
      expect(seen).toEqual(order);
    }
    // a run that ends between two pages is neither lost nor listed twice
    const page = await list({ job: job.id, limit: 1 });
    await finish(
      api,
      [third, fourth].filter((run) => run !== undefined),
    );
    const rest = await ids({ job: job.id, cursor: page.next });
    expect(rest).toEqual([third?.id, fourth?.id, fifth?.id, first?.id, second?.id]);
  });

  it('a cursor of another list, or an invalid one, is rejected', async () => {
    const job = await makeJob(api);
    for (const cursor of ['', 'live.x', `5.${newId()}x`, newId()])
      await expect(list({ job: job.id, cursor })).rejects.toEqual(refusal(400));
    await expect(list({ cursor: `live.${newId()}` })).rejects.toEqual(refusal(400));
  });

  it('all runs of a task are found among far more runs of others', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'rare' }, { name: 'often' }] });
    const rare = await activate(api, job.tasks['rare'], day(1));
    await runAll(api, 'failure');
    await api.db.exec(sql`
      insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, finished_at)
      select new_id(), ${job.tasks['often']}, ${day(1)}::timestamptz + n * interval '1 s', 'token', 1, 1, 'normal', 1,
             'success', ${day(1)}, ${new Date(api.ctx.time.now())}::timestamptz + n * interval '1 s'
        from generate_series(1, 30500) as n`);
    expect(await ids({ task: job.tasks['rare'] })).toEqual([rare]);
    // one window per page, with a cursor for the next
    const failed = await list({ job: job.id, state: 'failure' });
    expect(failed).toMatchObject({ items: [], next: anyText });
    expect(await list({ job: job.id, state: 'failure', cursor: failed.next })).toMatchObject({ items: [{ id: rare }] });
  });
});

describe('single runs', () => {
  it('a run is returned with all its fields', async () => {
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

  it('a run can be read by its own task, but not by another', async () => {
    const job = await makeJob(api);
    await activate(api, job.tasks['only'], day(1));
    const [run] = await claim(api);
    const read = (id: string) => api.as(taskOf(run?.id ?? ''))('GET /api/runs/{id}', { params: { id } });
    expect(await read(run?.id ?? '')).toMatchObject({ state: 'running' });
    await expect(read(newId())).rejects.toEqual(refusal(403));
    if (run) await finish(api, [run]);
  });

  it('an unknown or deleted run is not found', async () => {
    const read = api.call('GET /api/runs/{id}', { params: { id: newId() } });
    await expect(read).rejects.toEqual(refusal(404));
    await expect(read).rejects.toThrow(/run not found: .*; retention may have deleted it/);
  });
});

describe('cancelling', () => {
  it('a queued run is cancelled at once', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelled' });
    expect(await eventTypes(api.db, before)).toEqual(['run.finished']);
    expect(api.heard).toEqual(['events', 'ready']);
    expect(await api.call('GET /api/runs/{id}', { params: { id } })).toMatchObject({
      state: 'cancelled',
      reason: 'cancelled by key:operator',
    });
    expect(await cancel(id)).toEqual({ id, outcome: 'finished' });
  });

  it('the worker of a running run is notified', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    const runs = await claim(api);
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelling' });
    expect(api.heard).toEqual(['events', `cancel ${JSON.stringify({ tenant: api.ctx.tenant.id, run: id, lease: 1 })}`]);
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelling' });
    expect(await eventTypes(api.db, before)).toEqual(['run.cancel_wished']);
    await finish(api, runs, 'cancelled');
  });

  it('cancelling a failed run drops its scheduled retry', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a', retry: { max_attempts: 2 } }] });
    const id = await activate(api, job.tasks['a'], day(1));
    await runAll(api, 'failure');
    expect(await cancel(id)).toEqual({ id, outcome: 'cancelled' });
    expect(await api.db.rows(sql`select 1 from retry`)).toEqual([]);
  });

  it('cancelling an unknown run is not found', async () => {
    await expect(cancel(newId())).rejects.toEqual(refusal(404));
  });
});
