import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
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
import { until } from '../../../test/harness/until.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import type { Service } from '../../kernel/service.ts';
import { sql } from '../../kernel/sql.ts';
import { makeScheduler } from '../../scheduler/scheduler.ts';

let api: TenantApi;
let scheduler: Service | undefined;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterEach(async () => {
  await stopScheduler();
  await clearUp();
});
afterAll(() => api.close());

async function startScheduler(): Promise<void> {
  scheduler = makeScheduler(api.ctx);
  await scheduler.start();
}

async function stopScheduler(): Promise<void> {
  await scheduler?.stop();
  scheduler = undefined;
}

/** Deletes all jobs and ends their runs, so that no test claims runs of another. */
async function clearUp(): Promise<void> {
  const jobs = await api.db.rows<{ id: string }>(sql`select id from job where deleted_at is null`);
  for (const { id } of jobs) await api.call('DELETE /api/jobs/{id}', { params: { id } });
  await finish(api, await claim(api, 1_000), 'cancelled');
}

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const daily = { name: 't', start: day(1), period: '1d', catchup: 'none' };
const retry = { max_attempts: 2, delay: '1h' };

const makeDaily = (task: object = {}, trigger: object = {}): Promise<MadeJob> =>
  makeJob(api, {
    triggers: [{ ...daily, ...trigger }],
    tasks: [{ name: 'a', depends: ['trigger/t'], ...task }],
  });
const ask = (job: MadeJob, body: object) =>
  api.call('POST /api/jobs/{id}/backfill', {
    params: { id: job.id },
    body: { first: day(1), last: day(3), ...body },
  });
const look = (id: string) => api.call('GET /api/backfills/{id}', { params: { id } });
const cancel = (id: string) => api.call('POST /api/backfills/{id}/cancel', { params: { id } });

async function begin(job: MadeJob, body: object = {}) {
  const made = await ask(job, body);
  if (!('id' in made)) throw new Error('a dry run was not asked for');
  return made;
}

const firedOf = async (job: MadeJob, cause: string): Promise<string[]> => {
  const rows = await api.db.rows<{ instant: Date }>(sql`
    select instant from firing where trigger_id = any (${Object.values(job.triggers)}::uuid[]) and cause = ${cause}
     order by instant`);
  return rows.map((row) => row.instant.toISOString());
};
const hasEnded = (id: string, state: string) =>
  until(`the backfill is ${state}`, async () => {
    const seen = await look(id);
    return seen.state === state && seen.ended_at !== null ? seen : undefined;
  });
const hasFired = (id: string, count: number) =>
  until(`${count} have fired`, async () => (await look(id)).instants.fired === count || undefined);

describe('running backfills', () => {
  it('a backfill fires each instant of the range once more, and is done when all runs have ended', async () => {
    const job = await makeDaily();
    for (const n of [1, 2, 3, 4]) await fire(api, job.triggers['t'], day(n));
    await runAll(api);
    await startScheduler();
    const made = await begin(job, { first: day(2), last: day(3), priority: 'low' });
    expect(made).toMatchObject({
      job: { id: job.id, name: 'job' },
      name: null,
      triggers: ['t'],
      first: day(2),
      last: day(3),
      order: 'earliest',
      priority: 'low',
      only: 'all',
      state: 'running',
      instants: { total: 2, skipped: 0 },
      ended_at: null,
      by: 'key:operator',
      runs_complete: true,
    });
    await hasFired(made.id, 2);
    expect(await firedOf(job, made.id)).toEqual([day(2), day(3)]);
    expect((await look(made.id)).runs).toMatchObject({ ready: 2, running: 0, success: 0 });
    const runs = await claim(api);
    expect((await look(made.id)).runs).toMatchObject({ ready: 0, running: 2, success: 0 });
    await finish(api, runs.slice(0, 1));
    expect(await look(made.id)).toMatchObject({ state: 'running', runs: { running: 1, success: 1 } });
    await finish(api, runs.slice(1), 'failure');
    expect(await hasEnded(made.id, 'done')).toMatchObject({ runs: { running: 0, success: 1, failure: 1 } });
    const logged = await api.db.rows(sql`
      select type, actor, body::json -> 'instants' -> 'fired' as fired from event where subject = ${made.id} order by seq`);
    expect(logged).toEqual([
      { type: 'backfill.created', actor: 'key:operator', fired: null },
      { type: 'backfill.done', actor: 'scheduler', fired: 2 },
    ]);
    const kept = await api.db.rows<{ priority: string }>(sql`
      select priority from run where task_id = ${job.tasks['a']} and queued_at >= ${made.created_at}`);
    expect(kept).toEqual([{ priority: 'low' }, { priority: 'low' }]);
  });

  it('a backfill ends only after retries and children, and counts each task at each instant once', async () => {
    const job = await makeJob(api, {
      triggers: [daily],
      tasks: [
        { name: 'a', depends: ['trigger/t@1d'], retry: { max_attempts: 2, delay: '1s' } },
        { name: 'b', depends: ['task/a'] },
      ],
    });
    await startScheduler();
    const { id } = await begin(job, { last: day(1) });
    await hasFired(id, 1);
    await finish(api, await claim(api), 'failure');
    expect(await look(id)).toMatchObject({ state: 'running', runs: { retry: 1, failure: 0 } });
    const again = await until('the retry is queued', async () => {
      const runs = await claim(api);
      return runs.length > 0 ? runs : undefined;
    });
    await finish(api, again);
    expect(await look(id)).toMatchObject({ state: 'running', runs: { ready: 1, success: 1, failure: 0 } });
    await finish(api, await claim(api));
    expect((await hasEnded(id, 'done')).runs).toMatchObject({ success: 2, failure: 0, retry: 0 });
  });

  it('a backfill can fire only missing instants, and counts the skipped ones', async () => {
    const job = await makeDaily();
    await fire(api, job.triggers['t'], day(2));
    await runAll(api);
    await startScheduler();
    const { id } = await begin(job, { only: 'missing' });
    await hasFired(id, 2);
    expect((await look(id)).instants).toEqual({ total: 3, fired: 2, skipped: 1 });
    expect(await firedOf(job, id)).toEqual([day(1), day(3)]);
    await runAll(api);
    await hasEnded(id, 'done');
    const again = await begin(job, { only: 'missing' });
    expect((await hasEnded(again.id, 'done')).instants).toEqual({ total: 3, fired: 0, skipped: 3 });
  });

  it.each(['earliest', 'latest'] as const)(
    'a backfill queues the %s instants first, over the whole range',
    async (order) => {
      const job = await makeDaily({}, { start: '2020-01-01T00:00:00Z', period: '1h' });
      const { id } = await begin(job, { first: '2020-01-01T00:00:00Z', last: '2020-02-01T00:00:00Z', order });
      await startScheduler();
      await hasFired(id, 745);
      const rows = await api.db.rows<{ instant: Date }>(sql`
      select instant from live where task_id = ${job.tasks['a']} order by rank, id`);
      const instants = rows.map((row) => row.instant.getTime());
      expect(instants).toEqual(instants.toSorted((a, b) => (order === 'earliest' ? a - b : b - a)));
      await cancel(id);
    },
  );

  it('a backfill waits while its job is paused, and continues afterwards', async () => {
    const job = await makeDaily();
    const paused = (value: boolean) =>
      api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: value } });
    await paused(true);
    await startScheduler();
    const [held, free] = [await begin(job), await begin(await makeDaily())];
    await hasFired(free.id, 3);
    expect((await look(held.id)).instants.fired).toBe(0);
    await paused(false);
    await hasFired(held.id, 3);
  });

  it('a backfill with thousands of queued runs is held back, and the next one is not', async () => {
    const job = await makeDaily({}, { start: '2020-01-01T00:00:00Z', period: '1h' });
    const { id } = await begin(job, { first: '2020-01-01T00:00:00Z', last: '2020-12-31T00:00:00Z' });
    await startScheduler();
    await hasFired(id, 2_000);
    const small = await begin(await makeDaily());
    await hasFired(small.id, 3);
    expect((await look(id)).instants).toMatchObject({ total: 8761, fired: 2_000 });
    const settled = async (): Promise<boolean> => {
      await finish(api, await claim(api, 500));
      return (await look(id)).instants.fired === 8761;
    };
    await until('all have fired', async () => (await settled()) || undefined, 60_000);
  }, 90_000);

  it('a backfill of a million instants does not delay a live trigger', async () => {
    const start = '1990-01-01T00:00:00.000Z';
    const many = await makeJob(api, { triggers: [{ ...daily, start, period: '1m' }], tasks: [{ name: 'a' }] });
    const live = await makeDaily({}, { start: new Date(api.ctx.time.now()).toISOString(), period: '1s' });
    await startScheduler();
    const startedMs = performance.now();
    const { id } = await begin(many, {
      first: start,
      last: new Date(Date.parse(start) + 999_999 * 60_000).toISOString(),
    });
    const begun = new Date(api.ctx.time.now());
    const lateness = await until('the live trigger has fired some times, and many instants were filled', async () => {
      // instants before the first firing waited for the scheduler to start
      const rows = await api.db.rows<{ late: number }>(sql`
        select (extract(epoch from queued_at - instant) * 1000)::float8 as late from live
         where task_id = ${live.tasks['a']}
           and instant > greatest(${begun}, (select min(queued_at) from live where task_id = ${live.tasks['a']}))`);
      const isMuch = rows.length >= 4 && (await look(id)).instants.fired > 10_000;
      return isMuch ? rows.map((row) => row.late) : undefined;
    });
    const { instants, state } = await cancel(id);
    const wholeMs = ((performance.now() - startedMs) / instants.fired) * 1_000_000;
    expect([state, instants.fired > 10_000, instants.fired < 1_000_000]).toEqual(['cancelled', true, true]);
    // waiting for the whole backfill would take at least half a minute
    expect(Math.max(...lateness)).toBeLessThan(wholeMs / 10);
  });

  it('a backfill continues after a restart, and two schedulers fire nothing twice', async () => {
    const job = await makeDaily({ max_running: 1 }, { start: '2020-01-01T00:00:00Z', period: '1h' });
    const range = { first: '2020-01-01T00:00:00Z', last: '2020-02-01T00:00:00Z', order: 'random' };
    const [one, two] = [await begin(job, range), await begin(job, range)];
    const both = [makeScheduler(api.ctx), makeScheduler(api.ctx)];
    await Promise.all(both.map((service) => service.start()));
    await until('some have fired', async () => (await look(one.id)).instants.fired > 0 || undefined);
    await Promise.all(both.map((service) => service.stop()));
    await startScheduler();
    await hasFired(one.id, 745);
    await hasFired(two.id, 745);
    for (const { id } of [one, two]) expect(await firedOf(job, id)).toHaveLength(745);
    const queued = async () =>
      api.db.one(sql`
        select count(*)::integer as runs, count(distinct instant)::integer as instants
          from live where task_id = ${job.tasks['a']}`);
    expect(await queued()).toEqual({ runs: 1490, instants: 745 });
    // cancelling an accidental second backfill removes only its own runs
    await cancel(two.id);
    expect(await queued()).toEqual({ runs: 745, instants: 745 });
    await cancel(one.id);
    expect(await queued()).toEqual({ runs: 0, instants: 0 });
  });

  it('a piece fires once, even if it is fired repeatedly, and the marks of the trigger do not move', async () => {
    const job = await makeDaily();
    const { id } = await begin(job);
    const marks = sql`select earliest, latest from trigger where id = ${job.triggers['t']}`;
    const marked = await api.db.one(marks);
    const piece = () =>
      api.db.one(sql`
        select created, killed
          from fire_backfill(${id}::uuid, ${job.triggers['t']}::uuid, 0, ${[day(1), day(2), day(3)]}::timestamptz[],
                             ${new Date(api.ctx.time.now())})`);
    const both = await Promise.all([piece(), piece()]);
    expect(both.toSorted((a, b) => Number(a['created']) - Number(b['created']))).toEqual([
      { created: 0, killed: 0 },
      { created: 3, killed: 0 },
    ]);
    expect((await look(id)).instants).toEqual({ total: 3, fired: 3, skipped: 0 });
    expect(await api.db.one(marks)).toEqual(marked);
    await cancel(id);
    expect(await piece()).toEqual({ created: 0, killed: 0 });
  });

  it('a backfill keeps its schedule even if the trigger is edited meanwhile', async () => {
    const project = `p ${newId()}`;
    const tasks = [{ name: 'a', depends: ['trigger/t'] }];
    const job = await makeJob(api, { project, triggers: [daily], tasks });
    const { id } = await begin(job);
    await makeJob(api, { project, triggers: [{ ...daily, period: '1h' }], tasks });
    await startScheduler();
    await hasFired(id, 3);
    expect(await firedOf(job, id)).toEqual([day(1), day(2), day(3)]);
  });

  it('a backfill ends when its trigger is removed, and is cancelled when its job is deleted', async () => {
    const project = `p ${newId()}`;
    const job = await makeJob(api, { project, triggers: [daily], tasks: [{ name: 'a', depends: ['trigger/t'] }] });
    const one = await begin(job);
    await makeJob(api, { project, tasks: [{ name: 'a' }] });
    const gone = await makeDaily();
    const two = await begin(gone);
    await api.call('DELETE /api/jobs/{id}', { params: { id: gone.id } });
    await startScheduler();
    expect((await hasEnded(one.id, 'done')).instants).toEqual({ total: 3, fired: 0, skipped: 0 });
    expect((await hasEnded(two.id, 'cancelled')).instants).toEqual({ total: 3, fired: 0, skipped: 0 });
  });
});

describe('cancelling a backfill', () => {
  it('a cancelled backfill stops firing, cancels queued runs and retries, and spares running and foreign runs', async () => {
    const job = await makeDaily({ retry }, { start: day(1), period: '1h' });
    await startScheduler();
    const { id } = await begin(job, { last: day(2) });
    await hasFired(id, 25);
    const running = await claim(api, 2);
    await finish(api, running.slice(0, 1), 'failure');
    const byHand = await activate(api, job.tasks['a'], '2026-01-01T20:00:00.000Z');
    const before = await newestPosition(api.db);
    const cancelled = await cancel(id);
    expect(cancelled).toMatchObject({ state: 'cancelled', instants: { fired: 25 } });
    // a user activates another run at one of the cancelled instants
    expect(cancelled.runs).toMatchObject({ retry: 0, ready: 1, running: 1, failure: 1, cancelled: 22 });
    const types = await eventTypes(api.db, before);
    expect(types.filter((type) => type === 'run.finished')).toHaveLength(23);
    expect(types.filter((type) => type !== 'run.finished')).toEqual(['backfill.cancelled', 'retry.cancelled']);
    expect((await runAll(api)).map((run) => run.id)).toEqual([byHand]);
    expect((await look(id)).ended_at).toBeNull();
    await finish(api, running.slice(1));
    expect((await hasEnded(id, 'cancelled')).runs).toMatchObject({ success: 2, failure: 1, cancelled: 22 });
    const events = await newestPosition(api.db);
    expect(await cancel(id)).toMatchObject({ state: 'cancelled' });
    expect(await newestPosition(api.db)).toBe(events);
  });

  it('the scheduler completes a cancellation whose process died half-way', async () => {
    const job = await makeDaily({ max_running: 1 });
    await startScheduler();
    const { id } = await begin(job);
    await hasFired(id, 3);
    await stopScheduler();
    await api.db.exec(sql`update backfill set state = 'cancelled' where id = ${id}`);
    await startScheduler();
    expect((await hasEnded(id, 'cancelled')).runs).toMatchObject({ cancelled: 3, ready: 0, waiting: 0 });
    expect(await api.db.rows(sql`select 1 from gate where id = ${job.tasks['a']} and used > 0`)).toEqual([]);
  });

  it('a cancellation comes before or after a piece, never in its middle', async () => {
    const job = await makeDaily({}, { start: '2020-01-01T00:00:00Z', period: '1h' });
    await startScheduler();
    const { id } = await begin(job, { first: '2020-01-01T00:00:00Z', last: '2020-03-01T00:00:00Z' });
    await until('some have fired', async () => (await look(id)).instants.fired > 0 || undefined);
    const { instants } = await cancel(id);
    expect(await firedOf(job, id)).toHaveLength(instants.fired);
    expect(await claim(api)).toEqual([]);
    expect((await look(id)).runs).toMatchObject({ cancelled: instants.fired, ready: 0 });
  });
});

describe('list of backfills', () => {
  it('backfills are listed newest first, of one job or of all, page by page', async () => {
    const [job, other] = [await makeDaily(), await makeDaily()];
    const ids = [];
    for (const which of [job, other, job, job]) ids.push((await begin(which)).id);
    const of = async (query: object) =>
      api.call('GET /api/jobs/{id}/backfills', { params: { id: job.id }, query: { limit: 2, ...query } });
    const first = await of({});
    expect([first.items.map((item) => item.id), first.next]).toEqual([[ids[3], ids[2]], ids[2]]);
    expect((await of({ cursor: first.next })).items.map((item) => item.id)).toEqual([ids[0]]);
    const all = await api.as(keyOf('viewer'))('GET /api/backfills', { query: { limit: 4 } });
    expect(all.items.map((item) => item.id)).toEqual(ids.toReversed());
  });
});
