/** The overview of jobs: filters, pages, running runs, the latest instants and the next firing. */
import { afterAll, beforeEach, beforeAll, describe, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { activate, claim, finish, fire, makeJob, type MadeJob, runAll } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { sql } from '../../kernel/sql.ts';
import { sharesOf } from './overview.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
/** Deletes all jobs, so that each test has its own list. */
beforeEach(async () => {
  const jobs = await api.db.rows<{ id: string }>(sql`select id from job where deleted_at is null`);
  for (const { id } of jobs) await api.call('DELETE /api/jobs/{id}', { params: { id } });
  await finish(api, await claim(api, 1_000), 'cancelled');
});
afterAll(() => api.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const overview = (query: object = {}) => api.call('GET /api/jobs/overview', { query });
const names = async (query: object = {}) =>
  (await overview(query)).items.map((job) => `${job.project.name}/${job.name}`);
const described = (project: string, name: string, description = '', more: object = {}): Promise<MadeJob> =>
  makeJob(api, { project, name, description, ...more });

describe('filters of the overview', () => {
  it('jobs are found by words in project, name or description, ignoring case', async () => {
    await described('Shop', 'Nightly import', 'orders of the day');
    await described('Shop', 'import_all', '100% of them');
    await described('Bank', 'nightly', 'Ärger mit Orders');
    expect(await names()).toEqual(['Bank/nightly', 'Shop/Nightly import', 'Shop/import_all']);
    expect(await names({ q: ' NIGHTLY  orders ' })).toEqual(['Bank/nightly', 'Shop/Nightly import']);
    expect(await names({ q: 'shop/night' })).toEqual(['Shop/Nightly import']);
    expect(await names({ q: 'ÄRGER' })).toEqual(['Bank/nightly']);
    expect(await names({ q: '_' })).toEqual(['Shop/import_all']);
    expect(await names({ q: '%' })).toEqual(['Shop/import_all']);
    expect(await names({ q: '\\' })).toEqual([]);
    const [bank] = (await overview({ q: 'bank' })).items;
    expect(await names({ project: bank?.project.id })).toEqual(['Bank/nightly']);
  });

  it('jobs are filtered by paused, running and failing', async () => {
    const [idle, busy, failed, mended] = [
      await described('p', 'idle', '', { paused: true }),
      await described('p', 'busy'),
      await described('p', 'failed'),
      await described('p', 'mended'),
    ];
    for (const job of [failed, mended]) {
      await activate(api, job.tasks['only'], day(1));
      await runAll(api, 'error');
    }
    api.advance(1);
    await activate(api, mended.tasks['only'], day(2));
    await runAll(api);
    expect(await names({ show: 'running' })).toEqual([]);
    await activate(api, busy.tasks['only'], day(1));
    expect(await names({ show: 'running' })).toEqual([]);
    await claim(api);
    expect(await names({ show: 'running' })).toEqual(['p/busy']);
    expect(await names({ show: 'failing' })).toEqual(['p/failed']);
    expect(await names({ show: 'paused' })).toEqual(['p/idle']);
    expect(await overview({ show: 'paused' })).toMatchObject({ total: 1, items: [{ id: idle.id, paused: true }] });
  });
});

describe('pages of the overview', () => {
  it('pages list each job once, by project and name, with the total', async () => {
    for (const name of ['b', 'a', 'c']) {
      await described('x', name);
      await described('w', name);
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await overview({ limit: 2, cursor });
      expect(page.total).toBe(6);
      seen.push(...page.items.map((job) => `${job.project.name}/${job.name}`));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual(['w/a', 'w/b', 'w/c', 'x/a', 'x/b', 'x/c']);
  });

  it('an invalid cursor, and a limit above two hundred, are rejected', async () => {
    await expect(overview({ cursor: 'nonsense' })).rejects.toEqual(refusal(400));
    await expect(overview({ limit: 201 })).rejects.toEqual(refusal(400));
  });
});

describe('jobs of the overview', () => {
  const twoTasks = (more: object = {}): Promise<MadeJob> =>
    makeJob(api, {
      triggers: [
        { name: 'late', start: '2050-01-01T00:00:00Z', period: '1d' },
        { name: 't', start: '2040-01-01T00:00:00Z', period: '1d', offset: '1h' },
      ],
      tasks: [
        { name: 'a', depends: ['trigger/t'] },
        { name: 'b', depends: ['task/a'] },
      ],
      ...more,
    });

  it('a job has its queued and running runs, and its next firing unless it is paused', async () => {
    const job = await twoTasks();
    for (const n of [1, 2, 3]) await activate(api, job.tasks['a'], day(n));
    await claim(api, 1);
    expect((await overview()).items).toMatchObject([
      {
        id: job.id,
        tasks: 2,
        running: 1,
        queued: 2,
        next: { trigger_name: 't', instant: '2040-01-01T00:00:00.000Z', due: '2040-01-01T01:00:00.000Z' },
      },
    ]);
    const { next_firing } = await api.call('GET /api/jobs/{id}', { params: { id: job.id } });
    expect((await overview()).items[0]?.next).toEqual(next_firing);
    await api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: true } });
    expect((await overview()).items[0]?.next).toBeNull();
  });

  it('a job has its latest instants, oldest first, with the states of the list of instants and their durations', async () => {
    const job = await twoTasks();
    for (let n = 1; n <= 18; n++) await fire(api, job.triggers['t'], day(n));
    for (let n = 0; n < 2; n++) {
      const runs = await claim(api, 18);
      api.advance(1_500);
      await finish(api, runs.slice(0, 15));
      await finish(api, runs.slice(15), 'failure');
    }
    await fire(api, job.triggers['t'], day(19));
    const recent = (await overview()).items[0]?.recent ?? [];
    const instants = await api.call('GET /api/jobs/{id}/instants', { params: { id: job.id }, query: { limit: 16 } });
    const listed = instants.items.toReversed().map(({ instant, state, started_at, finished_at }) => ({
      instant,
      state,
      seconds: started_at && finished_at ? (Date.parse(finished_at) - Date.parse(started_at)) / 1_000 : null,
    }));
    expect(recent).toEqual(listed);
    expect(recent.map((each) => each.state)).toContain('success');
    expect(recent.at(-1)).toEqual({ instant: day(19), state: 'ready', seconds: null });
    expect(recent.filter(({ seconds }) => (seconds ?? 0) >= 1.5).length).toBeGreaterThan(10);
  });
});

describe('number of instants per job', () => {
  const shares = (...sizes: number[]) =>
    sharesOf(sizes.map((tasks, i) => ({ job_id: `${i}`, tasks }))).map(({ instants }) => instants);
  it('small jobs get sixteen instants', () => expect(shares(1, 2, 0, 3)).toEqual([16, 16, 16]));
  it('a job with many tasks gets fewer instants, and at least one', () => expect(shares(900, 1)).toEqual([16, 2]));
  it('the total number of tokens is bounded', () => {
    const sizes = [...Array(50).keys()].map((n) => n * 4 + 1);
    const given = sharesOf(sizes.map((tasks, i) => ({ job_id: `${i}`, tasks })));
    const judged = given.reduce((sum, { job, instants }) => sum + instants * (sizes[Number(job)] ?? 0), 0);
    expect(judged).toBeLessThanOrEqual(2_000);
    expect(judged).toBeGreaterThan(1_500);
  });
  it('jobs for which no tokens are left get no instants', () => expect(shares(2_000, 1_500, 10)).toEqual([16, 1]));
});
