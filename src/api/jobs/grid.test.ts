/** The grid: tasks in the order of the graph, one letter per state, pages in both directions. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { activate, claim, finish, fire, makeJob, type MadeJob, runAll } from '../../../test/harness/runs.ts';
import { planModes, scansOf, statementsOf } from '../../../test/harness/scans.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { cellLetters } from './view-endpoints.ts';
import { gridOf } from './grid.ts';
import { inOrder } from './task-order.ts';

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
const grid = (job: MadeJob, query: object = {}) =>
  api.call('GET /api/jobs/{id}/grid', { params: { id: job.id }, query });
const rows = async (job: MadeJob) => (await grid(job)).items.map(({ instant, cells }) => [instant, cells]);

const chain = (first: object = {}): Promise<MadeJob> =>
  makeJob(api, {
    triggers: [{ name: 't', start: day(1), period: '1d' }],
    tasks: [
      { name: 'z', depends: ['trigger/t'], ...first },
      { name: 'm', depends: ['task/z'] },
      { name: 'a', depends: ['task/m'] },
    ],
  });

describe('cells of the grid', () => {
  it('a cell follows its token, and is a dash without a token', async () => {
    const job = await chain();
    await fire(api, job.triggers['t'], day(1));
    expect((await grid(job)).tasks.map((task) => task.name)).toEqual(['z', 'm', 'a']);
    expect(await rows(job)).toEqual([[day(1), 'q--']]);
    const runs = await claim(api);
    expect(await rows(job)).toEqual([[day(1), 'r--']]);
    await finish(api, runs);
    expect(await rows(job)).toEqual([[day(1), 'sq-']]);
    await runAll(api, 'failure');
    expect(await grid(job)).toMatchObject({ items: [{ instant: day(1), cells: 'sf-', state: 'failure' }] });
  });

  it('a cell shows a scheduled retry, and waiting after a clear', async () => {
    const job = await chain({ retry: { max_attempts: 2, delay: '1h' } });
    await fire(api, job.triggers['t'], day(1));
    await runAll(api, 'timeout');
    expect(await grid(job)).toMatchObject({ items: [{ cells: 'y--', state: 'retry' }] });
    await api.db.exec(sql`delete from retry`);
    expect(await rows(job)).toEqual([[day(1), 't--']]);
    api.advance(1);
    await api.call('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant: day(1) } });
    expect(await grid(job)).toMatchObject({ items: [{ cells: 'w--', state: 'waiting' }] });
  });

  it('the grid agrees with the list of instants and with the tokens', async () => {
    const job = await chain();
    const states = ['success', 'failure', 'timeout', 'error', 'cancelled'];
    for (let n = 1; n <= 12; n++) {
      await fire(api, job.triggers['t'], day(n));
      for (let runs = 0; runs < n % 4; runs++) await runAll(api, states[(n + runs) % states.length]);
    }
    await claim(api, 2);
    const [page, instants] = [
      await grid(job),
      await api.call('GET /api/jobs/{id}/instants', { params: { id: job.id } }),
    ];
    expect(page.items.map(({ instant, state }) => [instant, state])).toEqual(
      instants.items.map(({ instant, state }) => [instant, state]),
    );
    for (const { instant, cells } of page.items) {
      const tokens = await api.call('GET /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant } });
      const letters = new Map(tokens.map(({ task_id, state }) => [task_id, letterOf(state)]));
      expect(cells).toBe(page.tasks.map(({ id }) => letters.get(id) ?? '-').join(''));
    }
    expect(new Set(page.items.flatMap(({ cells }) => [...cells])).size).toBeGreaterThan(5);
  });
});

const letterOf = (state: string): string =>
  cellLetters[(state === 'active' ? 'ready' : state) as keyof typeof cellLetters];

describe('pages of the grid', () => {
  it('pages lead to the oldest instant and back, newest first, each instant once', async () => {
    const job = await chain();
    for (let n = 1; n <= 7; n++) await fire(api, job.triggers['t'], day(n));
    await activate(api, job.tasks['a'], day(9));
    const seen: string[][] = [];
    let page = await grid(job, { limit: 3 });
    expect(page.newer).toBeNull();
    for (;;) {
      seen.push(page.items.map((item) => item.instant));
      if (page.older === null) break;
      page = await grid(job, { limit: 3, before: page.older });
    }
    expect(seen).toEqual([
      [day(9), day(7), day(6)],
      [day(5), day(4), day(3)],
      [day(2), day(1)],
    ]);
    const back = await grid(job, { limit: 3, after: page.newer });
    expect(back.items.map((item) => item.instant)).toEqual([day(5), day(4), day(3)]);
    expect(back).toMatchObject({ older: day(3), newer: day(5) });
    const newest = await grid(job, { limit: 3, after: back.newer });
    expect(newest.items.map((item) => item.instant)).toEqual([day(9), day(7), day(6)]);
    expect(newest).toMatchObject({ older: day(6), newer: null });
  });

  it('an empty page still leads to its neighbours', async () => {
    const job = await chain();
    await fire(api, job.triggers['t'], day(5));
    const beyond = await grid(job, { after: day(5) });
    expect(beyond).toMatchObject({ items: [], newer: null });
    expect((await grid(job, { before: beyond.older })).items).toHaveLength(1);
    const below = await grid(job, { before: day(5) });
    expect(below).toMatchObject({ items: [], older: null });
    expect((await grid(job, { after: below.newer })).items).toHaveLength(1);
    const other = await chain();
    expect(await grid(other)).toMatchObject({ items: [], older: null, newer: null });
  });

  it('a page has fewer instants if there are many tasks, and at least one', async () => {
    const tasks = Array.from({ length: 300 }, (_, n) => ({ name: `task ${n}`, depends: ['trigger/t'] }));
    const job = await makeJob(api, { triggers: [{ name: 't', start: day(1), period: '1d' }], tasks });
    for (let n = 1; n <= 20; n++) await fire(api, job.triggers['t'], day(n));
    const page = await grid(job, { limit: 1000 });
    expect(page.items).toHaveLength(16);
    expect(page.older).toBe(day(5));
    expect((await grid(job, { before: page.older, limit: 1000 })).items).toHaveLength(4);
  });

  it('a page in both directions at once is rejected, and an unknown job is not found', async () => {
    const job = await chain();
    await expect(grid(job, { before: day(1), after: day(2) })).rejects.toMatchObject({
      status: 400,
      problem: { faults: [{ path: 'query.after', message: textWith('not both') }] },
    });
    await expect(grid({ ...job, id: newId() })).rejects.toEqual(refusal(404));
  });
});

describe('order of tasks', () => {
  const named = (names: string) => [...names].map((name) => ({ id: name, name }));
  const edges = (...pairs: string[]) =>
    pairs.map((pair) => ({ parent_id: pair[0] ?? '', child_id: pair[1] ?? '', offset_ms: pair.length > 2 ? 1 : 0 }));
  it.each<[string, string, string[], string]>([
    ['tasks without edges are sorted by name', 'cab', [], 'abc'],
    ['tasks follow the edges, layer by layer', 'abcdef', ['fd', 'fe', 'da', 'ea', 'cb'], 'cfbdea'],
    ['a task comes after the longest path to it', 'abc', ['ca', 'cb', 'ba'], 'cba'],
    ['an edge of a task to itself is ignored', 'ab', ['bb', 'ba'], 'ba'],
    ['tasks that all wait for each other are still sorted', 'abcd', ['ab', 'bc', 'ca', 'cd'], 'abcd'],
    ['a cycle is broken at an edge to another instant', 'abc', ['cb', 'ba', 'ac@'], 'cba'],
    ['tasks of other jobs are ignored', 'ab', ['xa', 'bx', 'ba'], 'ba'],
  ])('%s', (_, names, pairs, order) =>
    expect(
      inOrder(named(names), edges(...pairs))
        .map((task) => task.name)
        .join(''),
    ).toBe(order),
  );
});

it('the grid of a large new job reads each task once, even without statistics of the tables', async () => {
  const name = (i: number): string => String(i).padEnd(190, 'x');
  const parents = (i: number): string[] =>
    [1, 2, 3, 4, 5]
      .map((back) => i - back)
      .filter((parent) => parent >= 0)
      .map((parent) => `task/${name(parent)}`);
  const tasks = Array.from({ length: 2_000 }, (_, i) => ({ name: name(i), depends: parents(i) }));
  const { id } = await makeJob(api, { tasks });
  const query = { limit: 20, before: new Date(day(2)), after: undefined };
  const request = new Request('http://tenant');
  const rest = { body: undefined, caller: keyOf('viewer'), request, signal: request.signal };
  const asked = { params: { id }, query, ...rest };
  const statements = await statementsOf(api.db, (db) => gridOf(asked, { ...api.ctx, db }));
  for (const statement of statements) {
    for (const mode of planModes) {
      const scans = await scansOf(api.pool, new Set(['task', 'task_edge']), statement, mode);
      for (const { read } of scans) expect(read).toBeLessThanOrEqual(10_000);
    }
  }
});
